"""Input rates for a simulation, and events at such rates for a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elastream.errors import InvalidInputError
from elastream.workloads.choice import chosen_trace
from elastream.workloads.traces import MOST_EVENTS, Trace, evenly

if TYPE_CHECKING:
    from elastream.engines.spark.worker.trace_player import TraceSource


def trace(
    name: Trace | str | Path,
    *,
    speed: float = 1.0,
    scale: float = 1.0,
    duration: float | None = None,
    seed: int = 0,
    fill_gaps: bool = False,
) -> Trace:
    """Input rates: one of `elastream traces`, or a CSV file `time,value`.

    Args:
        name: The name of a trace, the path of a CSV file, or a `Trace`.
        speed: Play it this many times as fast.
        scale: Multiply the rates.
        duration: Cut it after this many seconds.
        seed: The same seed gives the same rates.
        fill_gaps: Interpolate steps that are missing from a file.

    Examples:
        >>> trace("step", speed=10, duration=30).duration
        30.0
    """
    for option, value in (
        ("speed", speed),
        ("scale", scale),
        ("duration", 1.0 if duration is None else duration),
    ):
        if not 0 < value < float("inf"):
            raise InvalidInputError(f"{option} {value:g}: it must be above 0, and finite")
    found = name if isinstance(name, Trace) else chosen_trace(str(name), seed, fill_gaps)
    step = found.step / speed
    values = scale * found.rates * step
    if np.any(values > MOST_EVENTS):
        raise InvalidInputError(f"scale {scale:g}: it makes more events than can be counted")
    if duration is not None:
        values = values[: max(int(np.ceil(duration / step - 1e-9)), 1)]
    return evenly(values, step)


def replay(
    make: Callable[[int, int], Any],
    at: Trace | str | Path = "spiky",
    *,
    speed: float = 1.0,
    scale: float = 1.0,
    duration: float | None = None,
) -> TraceSource:
    """A source that makes events at the rates of a trace, and ends with it.

    Args:
        make: `make(first, count)` makes the events with the numbers `first` to
            `first + count - 1`, as a `pyarrow.Table`. The same numbers must make the same events.
        at: The trace, as in `elastream.trace`.
        speed: Play it this many times as fast.
        scale: Multiply the rates.
        duration: Cut it after this many seconds.

    Examples:
        >>> import pyarrow as pa
        >>> def make(first, count):
        ...     return pa.table({"id": range(first, first + count)})
        >>> replay(make, "step", speed=10, duration=30).columns
        ['id']
    """
    from elastream.engines.spark.worker.trace_player import TraceSource

    if not callable(make):
        raise InvalidInputError(f"replay({make!r}, ...): give a function make(first, count) first")
    rates = trace(at, speed=speed, scale=scale, duration=duration)
    return TraceSource(make, rates.step, rates.rates)
