"""Plans, feedback, requests, units and counts as JSON, for any backend that stores text.

Nothing that is read back can run code: only the types below are made from it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from elastream.core.groupings.base import Feedback, SyncRequest
from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Requests, Unit

_FEEDBACK: dict[str, Any] = {kind.__name__: kind for kind in get_args(Feedback)}


def plan_to_json(plan: LanePlan) -> str:
    """All but the version, which the backend gives."""
    return json.dumps(
        {
            "active": dict(plan.active),
            "owners": dict(plan.owners),
            "admits": plan.admits,
            "halted": plan.halted,
        }
    )


def plan_from_json(text: str, version: int) -> LanePlan:
    """What `plan_to_json` made, under the version that the backend gave it."""
    content = json.loads(text)
    return LanePlan(
        {name: tuple(replicas) for name, replicas in content["active"].items()},
        {name: tuple(owners) for name, owners in content["owners"].items()},
        content["admits"],
        version,
        content.get("halted", False),
    )


def feedback_kind(feedback: Feedback) -> str:
    """What newer feedback of the same kind replaces."""
    return type(feedback).__name__


def feedback_to_json(feedback: Feedback) -> str:
    """Its fields by name."""
    values = {each.name: getattr(feedback, each.name) for each in fields(feedback)}
    return json.dumps({name: _plain(value) for name, value in values.items()})


def feedback_from_json(kind: str, text: str) -> Feedback:
    """What `feedback_to_json` made of feedback of this kind."""
    values = {name: _value(stored) for name, stored in json.loads(text).items()}
    if "epoch" in values:
        # Feedback in a state that an earlier elastream wrote calls its round so.
        values["round_number"] = values.pop("epoch")
    made: Feedback = _FEEDBACK[kind](**values)
    return made


def requests_to_json(requests: Requests) -> str:
    """Who asks, and what."""
    asked = [[getattr(each, field.name) for field in fields(each)] for each in requests.asked]
    return json.dumps([requests.producer, asked])


def requests_from_json(text: str) -> Requests:
    """What `requests_to_json` made."""
    (name, number), asked = json.loads(text)
    return Requests((name, number), tuple(SyncRequest(*values) for values in asked))


def unit_fields(unit: Unit) -> list[Any]:
    """Its fields in a row, the last one only of a part: an earlier elastream does not know it."""
    return list(unit if unit.at is not None else unit[:-1])


def unit_to_json(unit: Unit) -> str:
    """Its fields in a row."""
    return json.dumps(unit_fields(unit))


def unit_from_json(text: str | None, first: int) -> Unit | None:
    """What `unit_to_json` made, unless it is of events that are done: those before `first`."""
    unit = Unit(*json.loads(text)) if text else None
    return unit if unit and unit.first == first else None


def counts_to_json(counts: Counts) -> dict[str, Any]:
    """The numbers, and what was sent, lost and timed, if anything was."""
    numbers = (
        *counts[:5],
        counts.saturated,
        counts.saturated_events,
        counts.units,
        counts.squares,
    )
    told: dict[str, Any] = {"numbers": numbers}
    if counts.sent:
        told["sent"] = dict(counts.sent)
    if counts.lost:
        told["lost"] = dict(counts.lost)
    if counts.latency:
        told["latency"] = list(counts.latency.bins.items())
    if counts.chained:
        told["chained"] = {name: counts_to_json(of) for name, of in counts.chained.items()}
    return told


def counts_from_json(told: dict[str, Any]) -> Counts:
    """What `counts_to_json` made."""
    processed, emitted, dropped, busy, cpu, saturated, saturated_events, *timed = told["numbers"]
    units, squares = timed or (0, 0.0)  # Units were not always timed.
    return Counts(
        processed=int(processed),
        emitted=int(emitted),
        dropped=int(dropped),
        busy=busy,
        cpu=cpu,
        sent=told.get("sent", {}),
        lost=told.get("lost", {}),
        latency=LatencyHistogram({int(bin_): n for bin_, n in told.get("latency", ())}),
        saturated=saturated,
        saturated_events=int(saturated_events),
        units=int(units),
        squares=squares,
        chained={name: counts_from_json(of) for name, of in told.get("chained", {}).items()},
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        data = b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"dtype": value.dtype.str, "shape": value.shape, "data": data}
    return value.item() if isinstance(value, np.generic) else value


def _value(stored: Any) -> Any:
    if isinstance(stored, dict):
        flat = np.frombuffer(b64decode(stored["data"]), dtype=np.dtype(stored["dtype"]))
        return flat.reshape(stored["shape"])
    return tuple(stored) if isinstance(stored, list) else stored
