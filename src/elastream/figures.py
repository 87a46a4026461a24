"""Figures in files: shared by everything that draws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from elastream.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches; needs the extra `plots`."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError("drawing", "plots") from None
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, target: Path) -> Path:
    """Write it, in a folder that is created if need be; returns its path."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=110)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"{target}: cannot be written: {reason}") from None
    return target
