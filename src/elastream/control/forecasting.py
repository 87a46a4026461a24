"""Forecasts of the input on their own clock: one for every sampling window that closes.

An interval in which no window closed gets the forecast of the one before, seen from where it is
now. Quantiles come from the errors of the forecasts before, for windows and for intervals.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from elastream.control.monitor import Sampled
from elastream.core.stats import IntervalStats
from elastream.errors import NotReadyError
from elastream.policies.base import Outlook
from elastream.predictors.base import LONGEST_HORIZON, Forecast, Predictor, Samples, stand_in
from elastream.predictors.fallback import WithFallback
from elastream.predictors.quantiles import ErrorBands

TOLERANCE = 1e-6
ALIKE = 0.25
"""By how much an interval may be longer or shorter than others, for errors to be compared."""
SPARE = 2
"""Windows beyond those that an interval needs: it may begin late in one, and last a bit longer."""


class Forecasting:
    """One predictor's forecasts of the input, and how far off they have been."""

    def __init__(self, predictor: Predictor, look_back: int) -> None:
        self.predictor = predictor
        self._look_back = look_back
        self._made: Forecast | None = None
        self._seen = 0
        """How many windows had closed when the last forecast was made."""
        self._windows = ErrorBands()
        self._intervals = ErrorBands()
        self._duration: float | None = None
        """Of the intervals whose errors are known, in seconds."""
        self._held = 0.0
        """What sources held back at the end of the last interval."""

    def is_by(self, predictor: Predictor) -> bool:
        """Whether it is this model, whatever time it is given to answer."""
        return _model(self.predictor) is _model(predictor)

    def outlook(self, sampled: Sampled, seconds: float) -> Outlook:
        """The coming windows, up to `seconds` from now."""
        ahead = math.ceil((sampled.open + seconds) / sampled.length - TOLERANCE)
        ahead = min(ahead, LONGEST_HORIZON)  # The last window is held beyond.
        new = sampled.count - self._seen
        if self._made is None or new or len(self._made.values) < ahead:
            for sample in sampled.values[max(len(sampled.values) - new, 0) :].tolist():
                self._windows.settle(sample)
            made = forecast(self.predictor, sampled.values, max(ahead, 1), self._look_back)
            # Held, not forecast: some models say something else when asked for more windows.
            held = np.append(made.values, np.repeat(made.values[-1], SPARE))
            self._made = self._windows.around(replace(made, values=held))
            self._seen = sampled.count
        return Outlook(self._made, sampled.length, sampled.open)

    def intervals(self, outlook: Outlook, stats: IntervalStats, count: int) -> Forecast:
        """The outlook, added up to intervals of the last one's length."""
        expected = outlook.forecast
        # What was forecast is what arrives, whether or not sources could send it.
        arrived = max(stats.input + stats.held - self._held, 0.0)
        self._held = stats.held
        added = replace(expected, values=_added(expected.values, outlook, stats.duration, count))
        if stats.duration < outlook.window * (1 - TOLERANCE):
            quantiles = {
                level: _added(values, outlook, stats.duration, count)
                for level, values in expected.quantiles.items()
            }
            return replace(added, quantiles=quantiles)
        # Errors of windows partly cancel out in a longer interval, so it has its own errors.
        if self._duration is None or abs(stats.duration / self._duration - 1) > ALIKE:
            self._intervals, self._duration = ErrorBands(), stats.duration
        self._intervals.settle(arrived)
        return self._intervals.around(replace(added, quantiles={}))


def _model(predictor: Predictor) -> Predictor:
    return predictor.predictor if isinstance(predictor, WithFallback) else predictor


def forecast(predictor: Predictor, samples: Samples, horizon: int, look_back: int) -> Forecast:
    """A forecast from the last `look_back` samples, or as many as the model can use."""
    recent = samples[-max(look_back, predictor.wants) :]
    if len(recent) < 2:
        raise NotReadyError(f"a forecast needs 2 samples, and there is {len(recent)} so far")
    try:
        return predictor.predict(recent, horizon)
    except Exception as error:  # Whatever a model does, the pipeline must continue.
        return stand_in(recent, horizon, f"{predictor.name} failed: {error}")


def _added(events: Samples, outlook: Outlook, duration: float, count: int) -> Samples:
    """Events in `count` intervals from now on, assuming that windows are filled evenly."""
    edges = outlook.window * np.arange(len(events) + 1)
    total = np.concatenate([[0.0], np.cumsum(events)])
    ends = outlook.open + duration * np.arange(count + 1)
    added: Samples = np.diff(np.interp(ends, edges, total))
    return added
