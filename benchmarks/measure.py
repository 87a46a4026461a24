"""Timing that a noisy machine disturbs little, and a table of figures with their targets."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


def seconds(work: Callable[[], object], repeats: int = 21) -> float:
    """The median time of one call, after a first one that does not count."""
    work()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


@dataclass(frozen=True)
class Figure:
    """Something measured, the text it is shown as, and whether it met its target, if it has one."""

    what: str
    measured: str
    target: str = ""
    met: bool | None = None
    baseline: bool = False
    """Whether it is of something that ours is compared with."""


@dataclass(frozen=True)
class Section:
    """The figures of one benchmark."""

    title: str
    figures: tuple[Figure, ...]

    @property
    def met(self) -> bool:
        """Whether every target was met."""
        return all(figure.met is not False for figure in self.figures)


reported: list[Section] = []
"""What benchmarks of this process have reported, in their order."""


def report(title: str, figures: Sequence[Figure]) -> bool:
    """Print the figures; returns whether every target was met."""
    section = Section(title, tuple(figures))
    reported.append(section)
    show(section)
    return section.met


def show(section: Section) -> None:
    """Print the figures of a benchmark."""
    title, figures = section.title, section.figures
    table = Table(title=title, title_justify="left", min_width=72)
    for heading in ("", "measured", "target", ""):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for figure in figures:
        verdict = {None: "", True: "met", False: "[bold red]missed"}[figure.met]
        table.add_row(figure.what, figure.measured, figure.target, verdict)
    Console().print(table)
