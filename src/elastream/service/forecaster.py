"""Forecasts off the event loop, each within a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter

from elastream.errors import InvalidInputError
from elastream.predictors.base import Forecast, Predictor, checked_history, stand_in
from elastream.service.metrics import ServiceMetrics


class Forecaster:
    """Runs models on a pool of threads; `basic` stands in for one that fails or is too slow."""

    def __init__(self, models: Mapping[str, Predictor], *, workers: int, timeout: float) -> None:
        self.models = models
        self.timeout = timeout
        self.workers = workers
        self.metrics = ServiceMetrics()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Provide threads to run models on, as long as the service is up.

        At the end, work that has not begun is forgotten; what runs cannot be stopped, and ends by
        itself.
        """
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="predictor")
        try:
            yield
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def forecast(
        self, model: str, samples: list[float], horizon: int
    ) -> tuple[Forecast, float]:
        """The forecast, and how many milliseconds it took."""
        started = perf_counter()
        loop = asyncio.get_running_loop()
        # A model may have to be loaded first: on the thread, too.
        work = loop.run_in_executor(
            self._pool, lambda: self.models[model].predict(samples, horizon)
        )
        try:
            made = await asyncio.wait_for(work, self.timeout)
        except InvalidInputError:
            raise
        except TimeoutError:
            reason = f"{model} took longer than {self.timeout:g} s"
            made = stand_in(checked_history(samples), horizon, reason)
        except Exception as error:
            made = stand_in(checked_history(samples), horizon, f"{model} failed: {error}")
        seconds = perf_counter() - started
        self.metrics.count(model, seconds, fell_back=made.fallback is not None)
        return made, 1_000 * seconds
