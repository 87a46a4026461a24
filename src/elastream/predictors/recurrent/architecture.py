"""What a recurrent model looks like: its cell, its directions, its window and its horizon."""

from __future__ import annotations

from dataclasses import dataclass

from elastream.errors import InvalidInputError, UnknownNameError

CELLS = {
    "lstm": ("lstm", False),
    "gru": ("gru", False),
    "bilstm": ("lstm", True),
    "bigru": ("gru", True),
}
"""The cell of each model, and whether it also reads the window backwards."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of a network; two of the same shape differ in their weights only."""

    model: str
    """`lstm`, `gru`, `bilstm` or `bigru`."""
    window: int = 96
    """BGElasor's b: how many past samples the network reads."""
    horizon: int = 6
    """BGElasor's f: how many samples it forecasts at once."""
    hidden: int = 64
    """The size of the hidden state, in each direction."""
    stride: int = 3
    """How many samples the network reads in one recurrent step."""

    def __post_init__(self) -> None:
        if self.model not in CELLS:
            raise UnknownNameError("recurrent model", self.model, CELLS)
        for name in ("window", "horizon", "hidden", "stride"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInputError(f"the {name} must be a whole number from 1, not {value!r}")
        if self.window % self.stride:
            raise InvalidInputError(
                f"the window must be a multiple of {self.stride}, "
                f"the samples in one recurrent step: {self.window} is not"
            )

    @property
    def cell(self) -> str:
        """`lstm` or `gru`."""
        return CELLS[self.model][0]

    @property
    def directions(self) -> int:
        """2 when the network also reads the window backwards, else 1."""
        return 2 if CELLS[self.model][1] else 1
