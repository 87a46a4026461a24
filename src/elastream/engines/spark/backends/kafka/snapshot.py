"""The state as JSON, for whoever comes later: nothing that is read back can run code."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from elastream.engines.spark.backends.kafka.state import (
    Blob,
    Driver,
    Entry,
    Letter,
    Member,
    Role,
    RunningCounts,
    State,
)
from elastream.engines.spark.backends.kafka.versions import NEWEST, VERSION, check_version
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.parcels import Unit


def to_snapshot(state: State) -> bytes:
    """Everything, as JSON."""
    driver = state.driver
    return json.dumps(
        {
            VERSION: NEWEST,
            "pipeline": state.pipeline,
            "layout": {
                name: [of.lanes, of.key, of.shared, of.chained_to]
                for name, of in state.layout.items()
            },
            "lanes": [
                [
                    *(operator, number, lane.owner, lane.ownership, lane.arrived),
                    [_fields(entry) for entry in lane.entries.values()],
                ]
                for operator, lanes in state.lanes.items()
                for number, lane in lanes.items()
            ],
            "members": [[name, _fields(of)] for name, of in state.members.items()],
            "failed": [[n, list(failures.items())] for n, failures in state.failures.items()],
            "plan": [state.plan, state.plan_version],
            "generations": [state.generation, state.started],
            "roles": [[n, [_fields(role) for role in roles]] for n, roles in state.roles.items()],
            "feedback": [[*key, *value] for key, value in state.feedback.items()],
            "counts": [
                [name, of.numbers, of.sent, of.lost, list(of.latency.items())]
                for name, of in state.counted.items()
            ],
            "letters": [[number, _fields(of)] for number, of in state.letters.items()],
            "staged": state.staged,
            "admitted": state.admitted,
            "consumed": state.consumed,
            "trimmed": [[*key, offset] for key, offset in state.trimmed.items()],
            "stored": [[*key, offset] for key, offset in state.stored.items()],
            "driver": None if driver is None else _fields(driver),
            "numbers": state.numbers,
        }
    ).encode()


def from_snapshot(data: bytes) -> State:
    """What `to_snapshot` made."""
    told = json.loads(data)
    check_version(told)
    state = State(
        pipeline=told["pipeline"],
        layout={name: OperatorLanes(*of) for name, of in told["layout"].items()},
        members={_name(name): Member(*of) for name, of in told["members"]},
        # Before, they were of no generation. A driver that takes over forgets them anyway.
        failures={
            number: {_name(name): error for name, error in failures}
            for number, failures in told.get("failed", ())
        },
        plan=told["plan"][0],
        plan_version=told["plan"][1],
        generation=told["generations"][0],
        started=told["generations"][1],
        roles={
            number: [Role(_name(name), worker, ready) for name, worker, ready in roles]
            for number, roles in told["roles"]
        },
        feedback={
            (None if producer is None else _name(producer), _name(sender), kind): (number, text)
            for producer, sender, kind, number, text in told["feedback"]
        },
        counted={
            _name(name): RunningCounts(
                [*numbers, 0, 0.0][:9],  # Units were not always timed.
                Counter(sent),
                Counter(lost),
                Counter(dict(latency)),
            )
            for name, numbers, sent, lost, latency in told.get(
                "counts", told.get("tallies", ())
            )  # As it was called before.
        },
        letters={n: _letter(*of) for n, of in told["letters"]},
        staged={
            source: {
                name: [(events, Blob(*blob)) for events, blob in of] for name, of in names.items()
            }
            for source, names in told["staged"].items()
        },
        admitted=told["admitted"],
        consumed=told["consumed"],
        trimmed={(topic, partition): offset for topic, partition, offset in told["trimmed"]},
        stored={(topic, partition): offset for topic, partition, offset in told["stored"]},
        driver=None if told["driver"] is None else Driver(*told["driver"]),
        numbers=told["numbers"],
    )
    for operator, number, owner, ownership, arrived, entries in told["lanes"]:
        lane = state.lane(operator, number)
        for place, blob, *of in entries:
            entry = Entry(place, Blob(*blob), *of)
            entry.unit = Unit(*entry.unit) if entry.unit else None
            lane.add(entry)
        lane.owner, lane.ownership, lane.arrived = owner, ownership, arrived
    return state


def _letter(
    operator: str, events: int, error: str, lane: int, time: float, blob: list[Any]
) -> Letter:
    return Letter(operator, events, error, lane, time, Blob(*blob))


def _fields(value: Any) -> list[Any]:
    return [getattr(value, name) for name in value.__slots__]


def _name(told: list[Any]) -> MemberName:
    operator, number = told
    return operator, number
