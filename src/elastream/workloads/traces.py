"""Input rates that were recorded: one value per step of time, read from a file.

A trace is a CSV file with the header `time,value`. Times are seconds, or ISO timestamps (without a
zone they are taken as UTC), and evenly spaced; values are events per step. What is wrong with a
file is told with the number of its line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elastream.errors import InvalidInputError

HEADER = "time,value"
MOST_EVENTS = 2.0**53
"""Beyond it, a number cannot count single events."""
MOST_MISSING = 10_000_000
"""A gap of more steps is a wrong time."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded input: the events in each step of time.

    Examples:
        >>> from elastream import trace
        >>> step = trace("step")
        >>> step.duration, float(step.rates.max())
        (600.0, 4000.0)
    """

    times: NDArray[np.float64]
    """When each step begins, in seconds."""
    values: NDArray[np.float64]
    """Events in each step."""
    step: float
    """The length of a step, in seconds."""

    @property
    def duration(self) -> float:
        """From the start of the first step to the end of the last, in seconds."""
        return self.step * len(self.values)

    def first(self, seconds: float) -> Trace:
        """The first seconds of the trace, or all of it if it is shorter.

        >>> evenly(np.arange(10.0)).first(3).values
        array([0., 1., 2.])
        """
        count = max(1, int(seconds / self.step + 1e-9))
        return Trace(self.times[:count], self.values[:count], self.step)

    @property
    def rates(self) -> NDArray[np.float64]:
        """Events per second in every step."""
        return self.values / self.step


def evenly(values: NDArray[np.float64], step: float = 1.0) -> Trace:
    """A trace of these values that starts at 0."""
    return Trace(step * np.arange(len(values), dtype=np.float64), values.astype(np.float64), step)


def load_trace(path: Path, fill_gaps: bool = False) -> Trace:
    """Read a trace, or say which line of the file is wrong.

    Args:
        path: The CSV file.
        fill_gaps: Whether steps that are missing are put on a line between their neighbours; else
            a gap is refused.
    """
    lines = _lines(path)
    number, header = next(lines, (1, ""))
    if header.replace(" ", "").lower() != HEADER:
        raise _wrong(path, number, f"the header must be {HEADER!r}, not {header!r}")
    times: list[float] = []
    values: list[float] = []
    for number, line in lines:
        try:
            time, value = _row(line)
            missing = _steps_missing(times, time)
            if missing > MOST_MISSING:
                raise ValueError(f"{missing:,} steps before it are missing: too many for a gap")
            if missing and not fill_gaps:
                raise ValueError(
                    f"{missing} {'step' if missing == 1 else 'steps'} of "
                    f"{times[1] - times[0]:g} s missing before it: "
                    "fill the gap, or use --fill-gaps"
                )
        except ValueError as error:
            raise _wrong(path, number, str(error)) from None
        if missing:
            times += np.linspace(times[-1], time, missing + 2)[1:-1].tolist()
            values += np.linspace(values[-1], value, missing + 2)[1:-1].tolist()
        times.append(time)
        values.append(value)
    if len(times) < 2:
        raise _wrong(path, number, f"a trace needs at least 2 rows, and this one has {len(times)}")
    return Trace(np.array(times), np.array(values), times[1] - times[0])


def load_samples(path: Path, fill_gaps: bool = False) -> NDArray[np.float64]:
    """Read samples: one number per line, or the values of a trace."""
    if "," in next(_lines(path), (1, ""))[1]:
        return load_trace(path, fill_gaps).values
    samples: list[float] = []
    for number, line in _lines(path):
        try:
            samples.append(_value(line))
        except ValueError as error:
            raise _wrong(path, number, str(error)) from None
    return np.array(samples)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"{path}: cannot be read: it is not text in UTF-8") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line.strip()


def _row(line: str) -> tuple[float, float]:
    cells = line.split(",")
    if len(cells) != 2:
        raise ValueError(f"a row is a time and a value, and this one has {len(cells)} cells")
    return _time(cells[0].strip()), _value(cells[1].strip())


def _time(cell: str) -> float:
    try:
        seconds = float(cell)
    except ValueError:
        try:
            moment = datetime.fromisoformat(cell)
        except ValueError:
            raise ValueError(f"{cell!r} is neither seconds nor an ISO timestamp") from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(seconds):
        raise ValueError(f"the time {cell!r} is not finite")
    return seconds


def _value(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise ValueError(f"{cell!r} is not a number") from None
    if not math.isfinite(value):
        raise ValueError(f"the value {cell!r} is not finite")
    if value < 0:
        raise ValueError(f"the value {cell!r} is negative")
    if value > MOST_EVENTS:
        raise ValueError(f"the value {cell!r} is too large: {MOST_EVENTS:.0f} is the most")
    return value


def _steps_missing(times: list[float], time: float) -> int:
    """How many steps are left out before this time; the first two times say how long a step is."""
    if times and time <= times[-1]:
        raise ValueError("its time does not come after the one before")
    if len(times) < 2:
        return 0
    step, here = times[1] - times[0], time - times[-1]
    steps = round(here / step)
    if not math.isclose(here, steps * step, rel_tol=1e-6, abs_tol=1e-6):
        raise ValueError(
            f"its time is {here:g} s after the one before, which is not a multiple of the "
            f"first step, {step:g} s"
        )
    return steps - 1


def _wrong(path: Path, line: int, what: str) -> InvalidInputError:
    return InvalidInputError(f"{path}:{line}: {what}")
