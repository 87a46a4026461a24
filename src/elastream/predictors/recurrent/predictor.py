"""The recurrent models as predictors, each made from a file that `elastream train` wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from elastream.errors import InvalidInputError, MissingExtraError
from elastream.predictors.base import Predictor, Samples
from elastream.predictors.recurrent.model import TrainedModel
from elastream.predictors.recurrent.model_file import load


class Recurrent(Predictor):
    """A trained network: its last `window` samples in, `horizon` samples out.

    A longer horizon rolls the window over the network's own forecasts, a shorter one is cut off.
    With fewer samples than the window `basic` stands in: a window filled up with made-up samples
    would look like a load that the network has never seen.
    """

    def __init__(self, path: Path | str) -> None:
        self._use(load(Path(path)), str(path))

    @classmethod
    def of(cls, model: TrainedModel) -> Recurrent:
        """The predictor of a model that is already in memory."""
        predictor = cls.__new__(cls)
        predictor._use(model, "the model")
        return predictor

    def _use(self, model: TrainedModel, where: str) -> None:
        if model.architecture.model != self.name:
            raise InvalidInputError(
                f"{where} is a trained {model.architecture.model!r}, not {self.name!r}"
            )
        self.model = model
        self.wants = self.least_samples = model.architecture.window
        self._changes = _compiled(model)

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        window, width = self.model.architecture.window, self.model.range.width
        series = history[-window:]
        while len(series) < window + horizon:
            recent = series[-window:]
            changes = np.asarray(self._changes(self.model.range.scaled(recent)), np.float64)
            series = np.concatenate([series, np.maximum(recent[-1] + width * changes, 0.0)])
        return series[window : window + horizon]


class Lstm(Recurrent):
    """Long short-term memory, forwards."""

    name = "lstm"


class Gru(Recurrent):
    """Gated recurrent units, forwards."""

    name = "gru"


class BiLstm(Recurrent):
    """Long short-term memory, forwards and backwards."""

    name = "bilstm"


class BiGru(Recurrent):
    """Gated recurrent units, forwards and backwards: the network of BGElasor."""

    name = "bigru"


def _compiled(model: TrainedModel) -> Callable[[Samples], Any]:
    """The network of a model, compiled for its one shape before the first decision needs it."""
    try:
        import jax

        from elastream.predictors.recurrent.network import network_with
    except ModuleNotFoundError:
        raise MissingExtraError(f"the model {model.architecture.model!r}", "train") from None
    network = network_with(model.architecture, model.weights)
    window = np.zeros(model.architecture.window, np.float32)
    compiled = jax.jit(network.__call__).lower(window).compile()
    return lambda scaled: compiled(scaled.astype(np.float32))
