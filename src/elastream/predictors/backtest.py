"""A backtest with a rolling origin: what a model would have forecast along a series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.errors import InvalidInputError
from elastream.predictors.accuracy import coverage, mae, mape, pinball, rmse
from elastream.predictors.base import Forecast, Predictor, checked_history, checked_horizon
from elastream.predictors.quantiles import HIGH, LEVELS, LOW, ErrorBands


@dataclass(frozen=True, slots=True)
class Backtest:
    """What a model forecast from each of the `origins`, one row per origin, and the truth."""

    model: str
    origins: tuple[int, ...]
    truth: NDArray[np.float64]
    forecasts: NDArray[np.float64]
    fallbacks: int
    """How many times `basic` stood in for the model."""
    decision_ms: float
    """The median time of one forecast."""
    quantiles: Mapping[float, NDArray[np.float64]]
    """In the same shape as the forecasts; NaN while too few errors were known."""

    @property
    def mae(self) -> float:
        """Over every sample that was forecast, in events per sample."""
        return mae(self.truth, self.forecasts)

    @property
    def rmse(self) -> float:
        """Over every sample that was forecast, in events per sample."""
        return rmse(self.truth, self.forecasts)

    @property
    def mape(self) -> float:
        """Over every sample that was forecast and is not 0, in percent."""
        return mape(self.truth, self.forecasts)

    @property
    def coverage(self) -> float | None:
        """How much of the truth the 90 % band holds; None when there never was a band."""
        known = self._banded
        if not known.any():
            return None
        low, high = self.quantiles[LOW][known], self.quantiles[HIGH][known]
        return coverage(self.truth[known], low, high)

    @property
    def pinball(self) -> float | None:
        """Of the ends of the 90 % band, on average; None when there never was a band."""
        known = self._banded
        if not known.any():
            return None
        losses = [pinball(self.truth[known], self.quantiles[p][known], p) for p in (LOW, HIGH)]
        return sum(losses) / len(losses)

    @property
    def _banded(self) -> NDArray[np.bool_]:
        return np.isfinite(self.quantiles[LOW])


def backtest(
    predictor: Predictor,
    series: ArrayLike,
    horizon: int,
    *,
    history: int = 100,
    most_origins: int | None = None,
    after_each: Callable[[], None] = lambda: None,
) -> Backtest:
    """Forecast from one origin after another, each time from only the last `history` samples.

    A model that can make use of more samples gets them. Origins are `horizon` samples apart, so
    that every sample is forecast once; with `most_origins` they are that many at most, evenly
    spread over the series. Quantiles are learned on the way, from the forecasts before.
    """
    samples, steps = checked_history(series), checked_horizon(horizon)
    origins = rolling_origins(len(samples), steps, history, most_origins)
    seen = max(history, predictor.wants)
    bands, settled = ErrorBands(), origins[0]
    forecasts, took = [], []
    for origin in origins:
        for sample in samples[settled:origin].tolist():
            bands.settle(sample)
        settled = origin
        started = perf_counter()
        made = predictor.predict(samples[max(origin - seen, 0) : origin], steps)
        took.append(1_000 * (perf_counter() - started))
        forecasts.append(bands.around(made))
        after_each()
    return Backtest(
        model=predictor.name,
        origins=origins,
        truth=np.stack([samples[origin : origin + steps] for origin in origins]),
        forecasts=np.stack([forecast.values for forecast in forecasts]),
        fallbacks=sum(forecast.fallback is not None for forecast in forecasts),
        decision_ms=float(np.median(took)),
        quantiles={
            level: np.stack([_quantile(made, level) for made in forecasts]) for level in LEVELS
        },
    )


def _quantile(forecast: Forecast, level: float) -> NDArray[np.float64]:
    unknown = np.full(len(forecast.values), np.nan)
    return forecast.quantiles.get(level, unknown)


def rolling_origins(
    length: int, horizon: int, history: int, most: int | None = None
) -> tuple[int, ...]:
    """Where each forecast of a backtest begins.

    >>> rolling_origins(20, horizon=4, history=6)
    (6, 10, 14)
    >>> rolling_origins(20, horizon=4, history=6, most=2)
    (6, 14)
    """
    if horizon < 1:
        raise InvalidInputError(f"a backtest needs a horizon of at least 1 sample, not {horizon}")
    if history < 2:
        raise InvalidInputError(f"a backtest needs a history of at least 2 samples, not {history}")
    if most is not None and most < 1:
        raise InvalidInputError(f"a backtest needs at least 1 origin, not {most}")
    every = range(history, length - horizon + 1, horizon)
    if not every:
        raise InvalidInputError(
            f"a backtest of {history} samples in and {horizon} out needs a series of at least "
            f"{history + horizon}, and this one has {length}"
        )
    if most is None or most >= len(every):
        return tuple(every)
    return tuple(every[round(at)] for at in np.linspace(0, len(every) - 1, most))
