"""A trained model: weights, and what they were trained on. Plain values, without JAX."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elastream.predictors.recurrent.architecture import Architecture
from elastream.predictors.recurrent.scaling import Range

Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Errors:
    """How far the forecasts of one part of the series were off, in events per sample."""

    rmse: float
    mae: float
    basic_rmse: float
    """The same of `basic`, on the same samples."""
    basic_mae: float


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a series of samples comes from."""

    name: str
    """The name of a trace, or of a pipeline's own history."""
    step: float
    """Seconds from one sample to the next."""


@dataclass(frozen=True, slots=True)
class Training:
    """What a model was trained on, how, and how well it did."""

    origin: Origin
    samples: int
    digest: str
    """SHA-256 of the samples: the same series has the same one."""
    train_share: float
    validation_share: float
    seed: int
    epochs: int
    """After how many epochs the network was at its best."""
    validation: Errors
    test: Errors | None
    """None when the shares left no sample to test with."""
    version: str
    """The version of elastream that trained it."""


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """All there is to know about a model, and all that forecasting with it needs."""

    architecture: Architecture
    range: Range
    weights: Weights
    training: Training
