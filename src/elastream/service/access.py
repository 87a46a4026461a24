"""Who may do what: people on the machine use loopback, everyone else needs a token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from ipaddress import ip_address
from typing import NamedTuple

from elastream.errors import InvalidInputError

SHORTEST_TOKEN = 16
NAMELESS = "token"
"""The name of whoever carries ELASTREAM_TOKEN."""
LOCAL = "local"
"""The name of a caller when there are no tokens."""


class Caller(NamedTuple):
    """Who asks, and whether they may change anything."""

    name: str
    may_change: bool


@dataclass(frozen=True, slots=True)
class Access:
    """The tokens of a service, and whether only this machine can reach it."""

    tokens: Mapping[str, str] = field(default_factory=dict)
    """Tokens that may change and read, by the name of their holder."""
    readers: Mapping[str, str] = field(default_factory=dict)
    """Tokens that may only read. If there are any, reading requires a token, too."""
    loopback: bool = False
    """Whether requests must name this machine, so that no other website can impersonate it."""
    changes_per_second: float = 5.0
    """How often a pipeline may be changed; a few more at once."""

    @classmethod
    def at(cls, host: str, environment: Mapping[str, str]) -> Access:
        """From the environment, see `tokens_in`; a host that others can reach needs a token."""
        access = cls(*tokens_in(environment), loopback=is_loopback(host))
        if not (access.wants_token or access.loopback):
            raise InvalidInputError(
                f"{host} can be reached from other machines, so the service requires a token: "
                "set ELASTREAM_TOKEN or ELASTREAM_TOKENS, or listen on 127.0.0.1"
            )
        return access

    @property
    def wants_token(self) -> bool:
        """Whether changes require a token."""
        return bool(self.tokens or self.readers)

    def caller(self, authorization: str) -> Caller | None:
        """Who sent this header. The comparison takes constant time, and gives no token away."""
        if not self.wants_token:
            return Caller(LOCAL, may_change=True)
        given, found = authorization.encode(), None
        for may_change, tokens in ((True, self.tokens), (False, self.readers)):
            for name, token in tokens.items():
                if compare_digest(given, f"Bearer {token}".encode()):
                    found = Caller(name, may_change)
        return found


def tokens_in(environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The tokens of ELASTREAM_TOKENS and ELASTREAM_TOKEN, and those of ELASTREAM_READ_TOKENS.

    >>> tokens_in({"ELASTREAM_TOKENS": "anna=0123456789abcdef,bert=fedcba9876543210"})
    ({'anna': '0123456789abcdef', 'bert': 'fedcba9876543210'}, {})
    """
    tokens = _named("ELASTREAM_TOKENS", environment)
    if "ELASTREAM_TOKEN" in environment:
        tokens = {NAMELESS: environment["ELASTREAM_TOKEN"], **tokens}
    readers = _named("ELASTREAM_READ_TOKENS", environment)
    for name in tokens.keys() & readers.keys():
        raise InvalidInputError(
            f"ELASTREAM_READ_TOKENS: {name!r} already has a token that may change things"
        )
    for name, token in (tokens | readers).items():
        if len(token) < SHORTEST_TOKEN or not token.isascii():
            raise InvalidInputError(
                f"a token must have at least {SHORTEST_TOKEN} characters, all of them ASCII"
                + (f": that of {name!r} is not" if name != NAMELESS else "")
            )
    if set(tokens.values()) & set(readers.values()):
        raise InvalidInputError("ELASTREAM_READ_TOKENS: one of these tokens may also change things")
    return tokens, readers


def _named(variable: str, environment: Mapping[str, str]) -> dict[str, str]:
    tokens: dict[str, str] = {}
    for part in filter(None, environment.get(variable, "").split(",")):
        name, equals, token = part.strip().partition("=")
        if not (equals and name):
            raise InvalidInputError(f"{variable}: it must be NAME=TOKEN,NAME=TOKEN,...")
        if name in tokens:
            raise InvalidInputError(f"{variable}: {name!r} has two tokens")
        tokens[name] = token
    return tokens


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
