"""The topics of a state: made before the first event, removed with the state."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from elastream.engines.spark.backends.kafka.clients import (
    LARGEST,
    PATIENCE,
    Place,
    lets_us_in,
    not_allowed,
    not_let_in,
    translated,
)
from elastream.errors import EngineError, InvalidInputError

JOURNAL, SNAPSHOTS, BLOBS, DEAD_LETTERS = "journal", "snapshots", "events", "dead-letters"
BLOB_PARTITIONS = 4
LOOK_SECONDS = 1.0
REFUSED_SECONDS = 3.0
"""How long another broker may still let us in after one has refused."""
_NEEDED = {"READ", "WRITE", "DELETE"}
_FOR_EVER = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "segment.bytes": str(64 * 1024 * 1024),
    "max.message.bytes": str(LARGEST),
}


def topic_of(place: Place, operator: str) -> str:
    """Where the events of an operator with lanes of its own are kept.

    >>> topic_of(Place("localhost:9092", "orders"), "stop words")
    'orders.lanes.stop_20words'
    """
    legal = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in ".-") else f"_{ord(letter):x}"
        for letter in operator
    )
    return place.topic(f"lanes.{legal}")


def existing(place: Place) -> dict[str, int]:
    """The topics of the state that are there, and how many partitions each has."""
    found = _listed(place)
    return {name: len(of.partitions) for name, of in found.items() if _is_ours(name, place)}


def _listed(place: Place) -> Mapping[str, Any]:
    """All topics that we may see; an error that says why if no broker answers."""
    problems: list[KafkaError] = []
    admin = place.admin(problems.append)
    began = time.monotonic()
    while True:
        try:
            return admin.list_topics(timeout=min(LOOK_SECONDS, PATIENCE)).topics
        except KafkaException as error:
            if error.args[0].code() not in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT):
                raise translated(error, "listing topics", place) from error
        admin.poll(0)
        waited = time.monotonic() - began
        refusals = [problem for problem in problems if not lets_us_in(problem)]
        if refusals and waited > REFUSED_SECONDS:
            raise not_let_in(refusals[-1], place)
        if waited > PATIENCE:
            raise _no_answer(problems, place)


def _no_answer(problems: list[KafkaError], place: Place) -> InvalidInputError:
    telling = [each.str() for each in problems if each.code() != KafkaError._ALL_BROKERS_DOWN]
    cause = f" ({telling[-1]})" if telling else ""
    settings = f"those in {place.settings}" if place.settings else "as ?settings=FILE"
    return InvalidInputError(
        f"no Kafka broker answers at {place.address} within {PATIENCE:.0f} s{cause}: is it "
        f"running, and does it need other settings, such as security.protocol ({settings})?"
    )


def _is_ours(topic: str, place: Place) -> bool:
    """Whether it is a topic of the state; others may begin with the same name.

    >>> [_is_ours(name, Place("here:1", "a")) for name in ("a.journal", "a.lanes.b", "a.b.journal")]
    [True, True, False]
    """
    kind = topic.removeprefix(f"{place.name}.")
    fixed = kind in (JOURNAL, SNAPSHOTS, BLOBS, DEAD_LETTERS)
    return kind != topic and (fixed or kind.startswith("lanes."))


def make(place: Place, lanes: Mapping[str, int]) -> None:
    """Make what is missing, with a partition per lane.

    Args:
        place: Whose topics they are.
        lanes: By operator.
    """
    wanted = {
        place.topic(JOURNAL): (1, _FOR_EVER),
        place.topic(SNAPSHOTS): (1, {**_FOR_EVER, "cleanup.policy": "compact"}),
        place.topic(BLOBS): (BLOB_PARTITIONS, _FOR_EVER),
        place.topic(DEAD_LETTERS): (1, _FOR_EVER),
        **{topic_of(place, name): (count, _FOR_EVER) for name, count in lanes.items()},
    }
    there = existing(place)
    for kind in (JOURNAL, SNAPSHOTS):
        if there.get(place.topic(kind), 1) != 1:
            raise InvalidInputError(
                f"the topic {place.topic(kind)} has {there[place.topic(kind)]} partitions, so it "
                "was not made by elastream: name another state, or remove the topic"
            )
    missing = [
        NewTopic(name, partitions, place.replication, config=config)
        for name, (partitions, config) in wanted.items()
        if name not in there
    ]
    small = [
        NewPartitions(name, partitions)
        for name, (partitions, _) in wanted.items()
        if partitions > there.get(name, partitions)
    ]
    if missing or small:
        admin = place.admin()
        making = admin.create_topics(missing) if missing else {}
        making |= admin.create_partitions(small) if small else {}
        for name, made in making.items():
            try:
                made.result(PATIENCE)
            except KafkaException as error:
                _explain(error, name, place)
        _wait_for_leaders(place, admin, {name: wanted[name][0] for name in making})
    _check_rights(place, list(wanted))


def _check_rights(place: Place, names: list[str]) -> None:
    """An error if the user may not do with a topic what we will have to do with it."""
    admin = place.admin()
    described = admin.describe_topics(TopicCollection(names), include_authorized_operations=True)
    for name, found in described.items():
        try:
            allowed = found.result(PATIENCE).authorized_operations or ()
        except KafkaException as error:
            raise translated(error, f"looking at the topic {name}", place) from error
        if missing := _NEEDED - {each.name for each in allowed}:
            actions = ", ".join(sorted(missing)).lower()
            raise not_allowed(f"to {actions} the topic {name}", place)


def _wait_for_leaders(place: Place, admin: AdminClient, partitions: Mapping[str, int]) -> None:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        found = admin.list_topics(timeout=PATIENCE).topics
        if all(name in found and _led(found[name], count) for name, count in partitions.items()):
            return
        time.sleep(0.02)
    raise EngineError(f"the topics {place.name}.* have no leaders after {PATIENCE:.0f} s")


def _led(topic: Any, partitions: int) -> bool:
    there = topic.partitions.values()
    return len(there) >= partitions and all(each.leader >= 0 for each in there)


def _explain(error: KafkaException, name: str, place: Place) -> None:
    code = error.args[0].code()
    if code == KafkaError.TOPIC_ALREADY_EXISTS:
        return
    if code == KafkaError.INVALID_REPLICATION_FACTOR:
        copies = f"{place.replication} copies" if place.replication > 0 else "its usual copies"
        raise InvalidInputError(
            f"the topic {name} cannot have {copies}: {error.args[0].str()}: "
            f"name another number, as in kafka:{place.address}/{place.name}?replication=1"
        ) from error
    raise translated(error, f"making the topic {name}", place) from error


def remove(place: Place) -> list[str]:
    """Delete the topics of the state; their names."""
    names = list(existing(place))
    if names:
        admin = place.admin()
        for name, gone in admin.delete_topics(names).items():
            try:
                gone.result(PATIENCE)
            except KafkaException as error:
                raise translated(error, f"removing the topic {name}", place) from error
    return names


def delete_records(place: Place, upto: Mapping[tuple[str, int], int]) -> None:
    """Delete the records below these offsets, by topic and partition."""
    admin = place.admin()
    parts = [TopicPartition(topic, part, offset) for (topic, part), offset in upto.items()]
    for done in admin.delete_records(parts).values():
        try:
            done.result(PATIENCE)
        except KafkaException as error:
            raise translated(error, "deleting consumed records", place) from error
