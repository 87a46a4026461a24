"""Which samples a network learns from, which tell it when to stop, and which judge it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elastream.errors import InvalidInputError
from elastream.predictors.recurrent.architecture import Architecture

Starts = NDArray[np.int32]
"""Where in the series each window begins; what it forecasts begins `window` samples later."""


@dataclass(frozen=True, slots=True)
class Split:
    """The shares of a series, oldest first; what they leave is the test part.

    BGElasor section 4.1 has 40 days to train, 10 to validate and 10 to test.
    """

    train: float = 4 / 6
    validation: float = 1 / 6

    def __post_init__(self) -> None:
        if not (self.train > 0 and self.validation > 0 and self.train + self.validation <= 1):
            raise InvalidInputError(
                f"the shares for training ({self.train:g}) and validation ({self.validation:g}) "
                "must be more than 0, and together at most 1"
            )

    def ends(self, samples: int) -> tuple[int, int]:
        """Where the training part and the validation part end.

        >>> Split(0.5, 0.25).ends(100)
        (50, 75)
        """
        return round(samples * self.train), round(samples * (self.train + self.validation))


class Parts(NamedTuple):
    """Where the windows of each part begin."""

    train: Starts
    validation: Starts
    test: Starts
    """Empty when the shares left nothing to test with."""


def window_starts(architecture: Architecture, samples: int, split: Split) -> Parts:
    """The windows of each part, in a series of this many samples.

    What a window forecasts lies in its part as a whole; the window itself may begin before it.
    """
    window, horizon = architecture.window, architecture.horizon
    edges = (window, *split.ends(samples), samples)
    parts = Parts(
        *(
            np.arange(max(begin, window), end - horizon + 1, dtype=np.int32) - np.int32(window)
            for begin, end in pairwise(edges)
        )
    )
    for name in ("train", "validation"):
        if len(getattr(parts, name)) == 0:
            raise InvalidInputError(
                f"{samples} samples are too few for a window of {window} and a horizon of "
                f"{horizon}: none is left for the {name} part"
            )
    return parts
