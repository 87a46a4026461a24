"""Published and measured figures, cell by cell: as rows, as CSV, as Markdown."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

from elastream.experiments.base import MEASURES, Outcome

_STAR = {True: "*", False: ""}


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one row."""

    label: str
    measure: str
    published: float | None
    measured: float | None
    spread: float | None = None
    """Standard deviation of what was measured, over several runs."""
    simulated: float | None = None
    """The same in the simulator, if it was measured on Spark."""
    calibrated: bool = False
    """Whether the experiment was calibrated with it."""


def cells(outcome: Outcome) -> list[list[Cell]]:
    """The table, row by row."""
    beside = outcome.simulated or (None,) * len(outcome.results)
    return [
        [
            Cell(
                row.label,
                measure,
                row.published.get(measure),
                found.values[measure],
                found.spread.get(measure),
                other.values[measure] if other else None,
                measure in row.calibrated,
            )
            for measure in outcome.experiment.measures
        ]
        for row, found, other in zip(outcome.experiment.rows, outcome.results, beside, strict=True)
    ]


class Verdict(StrEnum):
    """Whether a published ordering was reproduced."""

    REPRODUCED = "reproduced"
    TIED = "tied"
    """The table shows the same number for both."""
    REVERSED = "reversed"


def orderings(outcome: Outcome) -> list[tuple[str, Verdict]]:
    """Every ordering that the paper published, in words, and what became of it.

    Rows are compared with their neighbours in the published order of each measure, and as the
    paper's claims say; equal numbers claim nothing, nor does a cell from which the experiment was
    calibrated.
    """
    table = cells(outcome)
    by_name = {(cell.label, cell.measure): cell for row in table for cell in row}
    pairs = []
    for column in zip(*table, strict=True):
        free = [cell for cell in column if cell.published is not None and not cell.calibrated]
        known = sorted(free, key=_published)
        pairs += [(a, b) for a, b in pairwise(known) if _published(a) < _published(b)]
    for claim in outcome.experiment.claims:
        pairs.append((by_name[claim.lower, claim.measure], by_name[claim.higher, claim.measure]))
    return [_compared(low, high) for low, high in pairs]


def write_csv(outcome: Outcome, target: Path) -> None:
    """One line per cell, for programs."""
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        on_spark = bool(outcome.simulated)
        kinds = ["simulated", "on_spark"] if on_spark else ["measured"]
        writer.writerow(["row", "measure", "published", *kinds])
        for line in cells(outcome):
            for cell in line:
                between = [cell.simulated] if on_spark else []
                numbers = [cell.published, *between, cell.measured]
                shown_as = ["" if number is None else number for number in numbers]
                writer.writerow([cell.label, cell.measure, *shown_as])


def markdown(outcome: Outcome) -> str:
    """One line per row, each cell as `published / measured`; a star where it was calibrated.

    Of what was measured on Spark, what the simulator says stands between.
    """
    titles = [MEASURES[measure] for measure in outcome.experiment.measures]
    lines = [
        f"# {outcome.experiment.title}",
        f"{heading(outcome)}, on {outcome.source}.",
        *origins(outcome),
        "",
        "| | " + " | ".join(titles) + " |",
        "| --- |" + " ---: |" * len(titles),
    ]
    for row in cells(outcome):
        pairs = [
            " / ".join(
                [shown(cell.published), *_between(outcome, cell), measured_with_spread(cell)]
            )
            + _STAR[cell.calibrated]
            for cell in row
        ]
        lines.append(f"| {row[0].label} | " + " | ".join(pairs) + " |")
    return "\n".join([*lines, "", f"{verdicts(outcome)}."]) + "\n"


def heading(outcome: Outcome) -> str:
    """What stands in a cell, in this order."""
    return "Published / simulated / on Spark" if outcome.simulated else "Published / measured"


def origins(outcome: Outcome) -> list[str]:
    """Which code measured it, if that was kept; row by row, if it was not the same for all."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for row, found in zip(outcome.experiment.rows, outcome.results, strict=True):
        if found.commits:
            rows.setdefault(found.commits, []).append(row.label)
    if not rows:
        return []
    if len(rows) == 1 and len(next(iter(rows))) == 1:
        return [f"Measured with commit {next(iter(rows))[0]}."]
    parts = [f"{', '.join(labels)} with {' and '.join(of)}" for of, labels in rows.items()]
    return [f"Measured with different commits: {'; '.join(parts)}."]


def _between(outcome: Outcome, cell: Cell) -> list[str]:
    return [shown(cell.simulated)] if outcome.simulated else []


def measured_with_spread(cell: Cell) -> str:
    """What was measured, with its spread if it has one."""
    spread = "" if cell.spread is None else f" ± {shown(cell.spread)}"
    return shown(cell.measured) + spread


def shown(value: float | None) -> str:
    """A number as a table shows it; a dash for none.

    >>> shown(0.5), shown(196962.95), shown(12), shown(None)
    ('0.500', '196,963', '12', '-')
    """
    if value is None:
        return "-"
    counted = value > 1 and float(value).is_integer()
    return f"{value:,.0f}" if value >= 100 or counted else f"{value:.3f}"


def _published(cell: Cell) -> float:
    return cell.published or 0.0


def verdicts(outcome: Outcome) -> str:
    """How many orderings were reproduced.

    As in "We reproduced 9 of 12 published orderings; 1 was a tie".
    """
    found = [verdict for _, verdict in orderings(outcome)]
    tied = found.count(Verdict.TIED)
    text = f"We reproduced {found.count(Verdict.REPRODUCED)} of {len(found)} published orderings"
    ties = "1 was a tie" if tied == 1 else f"{tied} were ties"
    return f"{text}; {ties}" if tied else text


def _compared(low: Cell, high: Cell) -> tuple[str, Verdict]:
    published = (
        "" if low.published is None else f" ({shown(low.published)}, {shown(high.published)})"
    )
    text = (
        f"{MEASURES[low.measure]}: {low.label} below {high.label}{published}; "
        f"measured {shown(low.measured)} and {shown(high.measured)}"
    )
    if shown(low.measured) == shown(high.measured):
        return text, Verdict.TIED
    same = (low.measured or 0.0) < (high.measured or 0.0)
    return text, Verdict.REPRODUCED if same else Verdict.REVERSED
