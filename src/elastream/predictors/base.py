"""The contract of every forecasting model: a history of samples in, `horizon` samples out.

A sample is the number of events that arrived in one sampling window. Whatever the model, a forecast
is finite and never negative, the same history and seed give the same forecast, a constant history
gives a constant forecast, and two samples are enough: a model that needs more lets `basic` stand in
and says so in `Forecast.fallback`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.errors import InvalidInputError

Samples = NDArray[np.float64]

LONGEST_HORIZON = 10_000


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a model expects: `values`, in events per sample, nearest first."""

    values: Samples
    model: str
    fallback: str | None = None
    """Why `model` stood in for the requested one; None if it did not."""
    quantiles: Mapping[float, Samples] = field(default_factory=dict)
    """Below each of these values the truth is expected with this chance; empty while nobody knows
    how far off the model is."""
    trusts: Mapping[str, float] = field(default_factory=dict)
    """Of a model that combines others: how much it counts on each for the next sample."""

    @property
    def mean(self) -> float:
        """Events per sample, averaged over the horizon."""
        with np.errstate(over="ignore"):
            mean = float(self.values.mean())
        # The sum of finite values may overflow; their mean does not.
        return mean if np.isfinite(mean) else float((self.values / len(self.values)).sum())


class Predictor(ABC):
    """One forecasting model."""

    name: str
    """Its name; a wrapper has the name of what it wraps."""
    least_samples: int = 2
    """With a shorter history, `basic` stands in."""
    wants: int = 0
    """How many samples it can use; it gets that many even if others look back less."""

    def predict(self, history: ArrayLike, horizon: int) -> Forecast:
        """Forecast the `horizon` samples that follow `history`."""
        samples = checked_history(history)
        steps = checked_horizon(horizon)
        if np.all(samples == samples[-1]):
            return Forecast(np.full(steps, samples[-1]), self.name)
        if len(samples) < self.least_samples:
            reason = f"{self.name} needs {self.least_samples} samples and has {len(samples)}"
            return stand_in(samples, steps, reason)
        try:
            # An overflow is not finite, and is handled below.
            with np.errstate(all="ignore"):
                made = self._extrapolate(samples, steps)
                trusts = made.trusts if isinstance(made, Forecast) else {}
                values = made.values if isinstance(made, Forecast) else made
                values = np.asarray(values, dtype=np.float64)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            return stand_in(samples, steps, f"{self.name} failed: {error}")
        if values.shape != (steps,) or not np.all(np.isfinite(values)):
            return stand_in(samples, steps, f"{self.name} gave no finite forecast")
        return Forecast(np.maximum(values, 0.0), self.name, trusts=trusts)

    @abstractmethod
    def _extrapolate(self, history: Samples, horizon: int) -> ArrayLike | Forecast:
        """The model itself: `history` is valid, not constant, and at least `least_samples` long."""


def stand_in(history: Samples, horizon: int, reason: str) -> Forecast:
    """`basic`, because of `reason`: the next samples repeat the last ones (PA-SPS section 3.2)."""
    return Forecast(repeat_last(history, horizon), "basic", reason)


def repeat_last(history: Samples, horizon: int) -> Samples:
    """The last `horizon` samples once more, or the whole of a shorter history over and over.

    >>> repeat_last(np.array([1.0, 2.0, 3.0]), 2)
    array([2., 3.])
    """
    return np.resize(history[-horizon:], horizon)


def checked_history(history: ArrayLike) -> Samples:
    """The history as an array, or an error that names what is wrong with it."""
    try:
        samples = np.asarray(history, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"the history must be numbers: {error}") from None
    if samples.ndim != 1:
        raise InvalidInputError(f"the history must be one list, and has {samples.ndim} dimensions")
    if len(samples) < 2:
        raise InvalidInputError(f"the history needs at least 2 samples, and has {len(samples)}")
    for wrong, what in ((~np.isfinite(samples), "not finite"), (samples < 0, "negative")):
        if wrong.any():
            first = int(np.argmax(wrong))
            raise InvalidInputError(f"history[{first}] is {samples[first]}: {what}")
    return samples


def checked_horizon(horizon: int) -> int:
    """The horizon, or an error that says what it may be."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer):
        raise InvalidInputError(f"the horizon must be a whole number, not {horizon!r}")
    if not 1 <= horizon <= LONGEST_HORIZON:
        raise InvalidInputError(f"the horizon must be 1 to {LONGEST_HORIZON}, not {horizon}")
    return int(horizon)
