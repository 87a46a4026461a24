"""Min-max scaling to the range of the training part (BGElasor section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from elastream.errors import InvalidInputError
from elastream.predictors.base import Samples

FARTHEST = 3.0
"""How many times the range of the training part a scaled sample may lie outside of it."""


@dataclass(frozen=True, slots=True)
class Range:
    """The lowest and the highest sample of the training part: 0 and 1 to the network."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise InvalidInputError(
                f"the samples range from {self.low} to {self.high}: there is nothing to learn"
            )

    @classmethod
    def of(cls, samples: Samples) -> Range:
        """The range of the training part."""
        return cls(float(samples.min()), float(samples.max()))

    @property
    def width(self) -> float:
        """One unit of the network, in events per sample."""
        return self.high - self.low

    def scaled(self, samples: Samples) -> Samples:
        """The samples as the network reads them.

        Far outside of what it has seen a network knows nothing, so that there its input is clipped:
        every gate is saturated by then, and no sample can overflow.

        >>> Range(100, 200).scaled(np.array([100.0, 150.0, 1e9]))
        array([0. , 0.5, 4. ])
        """
        return np.clip((samples - self.low) / self.width, -FARTHEST, 1 + FARTHEST)
