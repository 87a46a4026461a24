"""A model that may fail or take too long, with `basic` as its fallback.

A control loop has to decide in time: a late forecast is worthless. The model runs on another
thread; when it raises, or has not answered within `timeout` seconds, the forecast comes from
`basic`, and says why.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor

from numpy.typing import ArrayLike

from elastream.errors import InvalidInputError
from elastream.predictors.base import (
    Forecast,
    Predictor,
    Samples,
    checked_history,
    checked_horizon,
    stand_in,
)


class WithFallback(Predictor):
    """`predictor`, unless it fails or takes longer than `timeout` seconds.

    Python cannot stop a thread: a model that is too slow runs to its end, and other forecasts wait
    for it in the meantime, at most until their own timeout.
    """

    def __init__(
        self, predictor: Predictor, timeout: float, *, executor: Executor | None = None
    ) -> None:
        if not timeout > 0:
            raise InvalidInputError(f"the time-out must be more than 0 seconds, not {timeout}")
        self.name = predictor.name
        self.wants = predictor.wants
        self.predictor = predictor
        self.timeout = timeout
        self._executor = executor or ThreadPoolExecutor(1, thread_name_prefix=predictor.name)

    def predict(self, history: ArrayLike, horizon: int) -> Forecast:
        """Forecast in at most `timeout` seconds."""
        samples = checked_history(history)
        steps = checked_horizon(horizon)
        pending = self._executor.submit(self.predictor.predict, samples, steps)
        try:
            return pending.result(self.timeout)
        except TimeoutError:
            pending.cancel()
            reason = f"{self.predictor.name} took longer than {self.timeout:g} s"
        except Exception as error:
            reason = f"{self.predictor.name} failed: {error}"
        return stand_in(samples, steps, reason)

    def _extrapolate(self, history: Samples, horizon: int) -> Forecast:
        return self.predictor.predict(history, horizon)
