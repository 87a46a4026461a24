"""Who may do what: loopback for whoever sits at the machine, tokens for everyone else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from ipaddress import ip_address

from elastream.errors import InvalidInputError

SHORTEST_TOKEN = 16
NAMELESS = "token"
"""Who it is that carries ELASTREAM_TOKEN."""
LOCAL = "local"
"""Who it is where no tokens are."""


@dataclass(frozen=True, slots=True)
class Access:
    """The tokens of a service, and whether only this machine can reach it."""

    tokens: Mapping[str, str] = field(default_factory=dict)
    """By the name of who carries it."""
    loopback: bool = False
    """Whether requests must name this machine, so that no other web site can pass for it."""
    changes_per_second: float = 5.0
    """How often a pipeline may be changed; a few more at once."""

    @classmethod
    def at(cls, host: str, environment: Mapping[str, str]) -> Access:
        """As ELASTREAM_TOKENS and ELASTREAM_TOKEN say; a host that others reach needs one."""
        access = cls(tokens_in(environment), is_loopback(host))
        if not (access.tokens or access.loopback):
            raise InvalidInputError(
                f"{host} can be reached from other machines, and there the service wants a token: "
                "set ELASTREAM_TOKEN or ELASTREAM_TOKENS, or listen on 127.0.0.1"
            )
        return access

    def who(self, authorization: str) -> str | None:
        """The name of whoever sends this header; how long it takes tells nothing about a token."""
        if not self.tokens:
            return LOCAL
        given, found = authorization.encode(), None
        for name, token in self.tokens.items():
            if compare_digest(given, f"Bearer {token}".encode()):
                found = name
        return found


def tokens_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The named tokens of ELASTREAM_TOKENS, and that of ELASTREAM_TOKEN.

    >>> tokens_in({"ELASTREAM_TOKENS": "anna=0123456789abcdef,bert=fedcba9876543210"})
    {'anna': '0123456789abcdef', 'bert': 'fedcba9876543210'}
    """
    tokens: dict[str, str] = {}
    if "ELASTREAM_TOKEN" in environment:
        tokens[NAMELESS] = environment["ELASTREAM_TOKEN"]
    for part in filter(None, environment.get("ELASTREAM_TOKENS", "").split(",")):
        name, equals, token = part.strip().partition("=")
        if not (equals and name):
            raise InvalidInputError("ELASTREAM_TOKENS: it must be NAME=TOKEN,NAME=TOKEN,...")
        if name in tokens:
            raise InvalidInputError(f"ELASTREAM_TOKENS: {name!r} has two tokens")
        tokens[name] = token
    for name, token in tokens.items():
        if len(token) < SHORTEST_TOKEN or not token.isascii():
            raise InvalidInputError(
                f"the token must be at least {SHORTEST_TOKEN} characters, all of them ASCII"
                + (f": that of {name!r} is not" if name != NAMELESS else "")
            )
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
