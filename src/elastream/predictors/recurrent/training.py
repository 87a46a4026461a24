"""From a series of samples to a trained model."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from numpy.typing import ArrayLike

from elastream import __version__
from elastream.predictors.base import checked_history
from elastream.predictors.recurrent.architecture import Architecture
from elastream.predictors.recurrent.measuring import measured
from elastream.predictors.recurrent.model import Errors, Origin, TrainedModel, Training
from elastream.predictors.recurrent.network import weights_of
from elastream.predictors.recurrent.optimisation import Epoch, fit
from elastream.predictors.recurrent.scaling import Range
from elastream.predictors.recurrent.split import Split, Starts, window_starts

PAPERS_SPLIT = Split()


def train(
    series: ArrayLike,
    architecture: Architecture,
    origin: Origin,
    *,
    split: Split = PAPERS_SPLIT,
    epochs: int = 40,
    seed: int = 0,
    after_epoch: Callable[[Epoch], bool] = lambda epoch: True,
) -> TrainedModel:
    """Train a model on a series of samples.

    `after_epoch` gets every epoch and returns whether to continue. Whatever ends the training, the
    result is the network that was best on the validation part.
    """
    samples = checked_history(series)
    parts = window_starts(architecture, len(samples), split)
    span = Range.of(samples[: split.ends(len(samples))[0]])
    network, best_epoch = fit(
        architecture,
        span.scaled(samples),
        parts.train,
        parts.validation,
        epochs=epochs,
        seed=seed,
        after_epoch=after_epoch,
    )

    def errors(starts: Starts) -> Errors:
        return measured(network, architecture, span, samples, starts)

    return TrainedModel(
        architecture,
        span,
        weights_of(network),
        Training(
            origin=origin,
            samples=len(samples),
            digest=sha256(samples.tobytes()).hexdigest(),
            train_share=split.train,
            validation_share=split.validation,
            seed=seed,
            epochs=best_epoch,
            validation=errors(parts.validation),
            test=errors(parts.test) if len(parts.test) else None,
            version=__version__,
        ),
    )
