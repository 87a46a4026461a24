"""A recurrent model that keeps learning from its pipeline's history."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path

from numpy.typing import ArrayLike

from elastream.predictors.base import Forecast, Predictor, Samples
from elastream.predictors.recurrent.model import TrainedModel
from elastream.predictors.recurrent.model_file import save
from elastream.predictors.recurrent.predictor import Recurrent
from elastream.predictors.recurrent.retraining import Retraining, retrained

log = logging.getLogger(__name__)


class SelfTraining(Predictor):
    """`predictor`, retrained on a schedule.

    Training runs in the background. Until it ends, the current model answers; then the
    better of the two does, and is kept in a file.

    Args:
        predictor: The model to start with.
        schedule: When to train.
        recorded: Reads all samples that the pipeline has recorded.
        now: The time, in seconds.
        path: Where a new model is saved.
        executor: What runs the training; by default a separate thread.
    """

    def __init__(
        self,
        predictor: Recurrent,
        schedule: Retraining,
        recorded: Callable[[], Samples],
        now: Callable[[], float],
        path: Path,
        executor: Executor | None = None,
    ) -> None:
        self.name = predictor.name
        self.wants = predictor.wants
        self.predictor = predictor
        self._schedule = schedule
        self._recorded = recorded
        self._now = now
        self._path = path
        self._executor = executor or ThreadPoolExecutor(1, thread_name_prefix="retraining")
        self._last = now()
        self._training: Future[TrainedModel] | None = None

    def predict(self, history: ArrayLike, horizon: int) -> Forecast:
        """Forecast with the newest model; start a training if one is due."""
        self._take_over()
        self._train_if_due()
        return self.predictor.predict(history, horizon)

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        return self.predict(history, horizon).values

    def _train_if_due(self) -> None:
        now = self._now()
        if self._training or now - self._last < self._schedule.every:
            return
        samples = self._recorded()
        if self._schedule.due(now, self._last, len(samples)):
            self._last = now
            self._training = self._executor.submit(retrained, samples, self.predictor.model)

    def _take_over(self) -> None:
        if self._training is None or not self._training.done():
            return
        training, self._training = self._training, None
        error = training.exception()
        if error is not None:
            log.error("retraining failed, and the model stays as it is: %s", error)
        elif training.result() is not self.predictor.model:
            self.predictor = type(self.predictor).of(training.result())
            save(self.predictor.model, self._path)
            log.info("a new %s took over: %s", self.predictor.name, self._path)
