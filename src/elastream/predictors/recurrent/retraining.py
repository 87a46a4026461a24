"""Training again from what a pipeline recorded, on a schedule.

A control loop asks `Retraining.due` with its own clock, calls `retrained` when it is time, and
saves the model that comes back; nothing here waits, reads a clock or writes a file.
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from elastream.errors import InvalidInputError
from elastream.predictors.base import checked_history
from elastream.predictors.recurrent.measuring import measured
from elastream.predictors.recurrent.model import TrainedModel
from elastream.predictors.recurrent.network import network_with
from elastream.predictors.recurrent.split import Split, window_starts
from elastream.predictors.recurrent.training import train

SPLIT = Split(train=0.7, validation=0.15)
"""What is left judges: a network looks good on the part on which its training was stopped."""


@dataclass(frozen=True, slots=True)
class Retraining:
    """When to retrain: after `every` seconds, once there are enough samples."""

    every: float
    least_samples: int

    def __post_init__(self) -> None:
        if not self.every > 0:
            raise InvalidInputError(f"retraining needs more than 0 seconds, not {self.every}")
        if self.least_samples < 2:
            raise InvalidInputError(
                f"retraining needs at least 2 samples, not {self.least_samples}"
            )

    def due(self, now: float, last: float, samples: int) -> bool:
        """Whether it is time, when the model was last trained, or loaded, at `last`.

        >>> nightly = Retraining(every=86_400, least_samples=2_000)
        >>> nightly.due(now=90_000, last=0, samples=1_999)
        False
        >>> nightly.due(now=90_000, last=0, samples=2_000)
        True
        """
        return now - last >= self.every and samples >= self.least_samples


def retrained(history: ArrayLike, previous: TrainedModel, *, epochs: int = 40) -> TrainedModel:
    """A model of the same architecture, trained on `history`; or `previous`, when that is better.

    Both are judged on the newest part of the history, which decided nothing for either.
    """
    samples = checked_history(history)
    architecture = previous.architecture
    origin, seed = previous.training.origin, previous.training.seed
    model = train(samples, architecture, origin, split=SPLIT, epochs=epochs, seed=seed)
    newest = window_starts(architecture, len(samples), SPLIT).test
    if model.training.test is None:
        return previous
    network = network_with(architecture, previous.weights)
    before = measured(network, architecture, previous.range, samples, newest)
    return model if model.training.test.rmse < before.rmse else previous
