"""Where the cluster is, and clients that are set up for it.

Settings that may hold secrets are in a file that every process reads for itself. They are never
part of a value that travels, of a URL, or of a message.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO, TypeVar
from urllib.parse import parse_qsl, urlencode

from elastream.errors import (
    BackendUnavailableError,
    EngineError,
    InvalidInputError,
    MissingExtraError,
)

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
    from confluent_kafka.admin import AdminClient
except ImportError:
    raise MissingExtraError("a state on Kafka", "kafka") from None

PATIENCE = 30.0
"""Seconds that a cluster gets to answer before we say that it does not."""
LARGEST = 32 * 1024 * 1024
"""Bytes of the largest record."""

_NOT_ALLOWED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
PASSING = {
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    # A consumer must have the name of a group, and asks for it, but we use none.
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}
"""What consumers may be told while they read, and go on."""
_NOT_LET_IN = {
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
}
_TOO_OLD = {KafkaError.UNSUPPORTED_VERSION, KafkaError._UNSUPPORTED_FEATURE}
Client = TypeVar("Client")


@dataclass(frozen=True)
class Place:
    """A cluster, and the name that all topics of a pipeline's state begin with."""

    address: str
    name: str
    replication: int = -1
    """Copies of every record; the cluster's default unless given."""
    settings: str = ""
    """A file of librdkafka settings, a line each, such as `sasl.password=...`."""

    @classmethod
    def parse(cls, text: str) -> Place:
        """What follows `kafka:`.

        >>> Place.parse("one:9092,two:9092/orders?replication=3").name
        'orders'
        """
        where, _, query = text.partition("?")
        address, slash, name = where.strip("/").rpartition("/")
        if not slash or not name or ":" not in address:
            raise InvalidInputError(
                f"the state 'kafka:{where}' does not say where it is: "
                "write kafka:HOST:PORT/NAME, and topics will be called NAME.*"
            )
        if "@" in address:
            raise InvalidInputError(
                f"the state 'kafka:.../{name}' has a user in its address, where others can read "
                "the password: put sasl.username and sasl.password into a file, and name that: "
                f"kafka:HOST:PORT/{name}?settings=FILE"
            )
        if not all(letter.isalnum() or letter in "._-" for letter in name):
            raise InvalidInputError(
                f"the state's name {name!r} begins the names of topics: "
                "use letters, digits, '.', '_' and '-'"
            )
        if "lanes" in name.split("."):
            raise InvalidInputError(
                f"the state's name {name!r} has a part 'lanes', which the topics of another state "
                "may have: choose another name"
            )
        more = dict(parse_qsl(query))
        if "checkpoints" in more:
            raise InvalidInputError(
                f"the state 'kafka:{where}' does not say where checkpoints are: "
                "name that place with --checkpoint, or checkpoint= in Python"
            )
        if unknown := more.keys() - {"replication", "settings"}:
            raise InvalidInputError(
                f"the state 'kafka:{where}' cannot be given {', '.join(sorted(unknown))} "
                "after '?': there are replication=COPIES and settings=FILE, a file for librdkafka"
            )
        copies = more.get("replication", "-1")
        if copies != "-1" and not (copies.isdigit() and int(copies)):
            raise InvalidInputError(f"replication={copies}: it must be a number above 0")
        return cls(address, name, int(copies), more.get("settings", ""))

    def __str__(self) -> str:
        """What `parse` reads."""
        more = {"settings": self.settings}
        if self.replication > 0:
            more["replication"] = str(self.replication)
        query = urlencode({name: value for name, value in more.items() if value})
        return f"{self.address}/{self.name}" + (f"?{query}" if query else "")

    def topic(self, kind: str) -> str:
        """The name of a topic."""
        return f"{self.name}.{kind}"

    def producer(self) -> Producer:
        """Records arrive once and in order, and outlive brokers that fail."""
        return self._client(
            Producer,
            self._common()
            | {
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "message.max.bytes": LARGEST,
                "message.timeout.ms": int(PATIENCE * 1000),
                "retry.backoff.ms": 20,
            },
        )

    def consumer(self, settings: Mapping[str, Any] | None = None) -> Consumer:
        """Reads from where it is told; no group keeps its position."""
        return self._client(
            Consumer,
            self._common()
            | {
                "group.id": self.name,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_uncommitted",
                "fetch.wait.max.ms": 500,
                "fetch.error.backoff.ms": 20,
                "fetch.message.max.bytes": LARGEST,
                "queued.max.messages.kbytes": 32 * 1024,
            }
            | dict(settings or {}),
        )

    def admin(self, on_error: Callable[[KafkaError], None] | None = None) -> AdminClient:
        """Makes and removes topics; it can say why there is no connection."""
        listening = {} if on_error is None else {"error_cb": on_error}
        return self._client(AdminClient, self._common() | listening)

    def _client(self, kind: Callable[[dict[str, Any]], Client], settings: dict[str, Any]) -> Client:
        """An error of librdkafka about a setting may quote its value, which may be a secret."""
        try:
            return kind(settings)
        except (KafkaException, ValueError, TypeError) as error:
            cause = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            for name, value in self._secrets().items():
                if value and not name.endswith(".location"):
                    cause = cause.replace(value, "...")
            raise InvalidInputError(
                f"the settings for Kafka in {self.settings} cannot be used: {cause}"
            ) from None

    def _common(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.address,
            "client.id": f"elastream-{self.name}",
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "topic.metadata.refresh.fast.interval.ms": 50,
            "log_level": 2,
        } | self._secrets()

    def _secrets(self) -> dict[str, str]:
        if not self.settings:
            return {}
        try:
            with open(self.settings) as file:
                _refuse_if_others_can_change(file)
                lines = file.read().splitlines()
        except OSError as error:
            raise InvalidInputError(
                f"the settings for Kafka in {self.settings} cannot be read: {error.strerror}"
            ) from None
        found = {}
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                name, equals, value = line.partition("=")
                if not equals:
                    raise InvalidInputError(f"{self.settings}, line {number}: write NAME=VALUE")
                found[name.strip()] = value.strip()
        return found


def _refuse_if_others_can_change(settings: TextIO) -> None:
    """Settings decide where secrets are sent, and may name a library to be loaded.

    A file of the administrator's is fine: that is how containers are given theirs.
    """
    found = os.fstat(settings.fileno())
    ours = found.st_uid in {0, os.geteuid()}
    if not ours or found.st_mode & stat.S_IWOTH:
        raise InvalidInputError(
            f"the settings for Kafka in {settings.name} could be changed by others: make the file "
            f"yours, and do not let everybody write to it (chown {os.geteuid()}, chmod o-w)"
        )


def translated(error: KafkaException | KafkaError, doing: str, place: Place) -> Exception:
    """An error of the client as one of ours: to be tried again, or to be told to a person."""
    of = error.args[0] if isinstance(error, KafkaException) else error
    if of.code() in _TOO_OLD:
        return EngineError(f"{place.address} is too old for {doing}: Kafka 3.0 or newer is needed")
    if of.code() in _NOT_LET_IN:
        return not_let_in(of, place)
    if of.code() in _NOT_ALLOWED:
        return not_allowed(f"{doing} ({of.name()})", place)
    return BackendUnavailableError(f"{doing}: {of.str()}")


def lets_us_in(problem: KafkaError) -> bool:
    """Whether a problem with a connection has nothing to do with who either side is.

    A certificate that is not trusted any more may be renewed while a run waits; at its start, it is
    a mistake.
    """
    return problem.code() not in _NOT_LET_IN | {KafkaError._SSL}


def not_let_in(problem: KafkaError, place: Place) -> InvalidInputError:
    """The broker does not trust us, or we do not trust it."""
    where = f"in {place.settings}" if place.settings else "in a file, as ?settings=FILE"
    return InvalidInputError(
        f"Kafka at {place.address} cannot be used by this client: {problem.str()}: check {where} "
        "security.protocol, sasl.mechanism, sasl.username, sasl.password and ssl.ca.location"
    )


def not_allowed(what: str, place: Place) -> EngineError:
    """The user lacks a right."""
    return EngineError(
        f"{place.address} does not allow {what}: the user needs the rights to create, alter, "
        f"delete, read and write topics that begin with '{place.name}.'"
    )
