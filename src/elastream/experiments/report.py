"""The output of an experiment: tables, figures, and one page with all of them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from elastream.errors import InvalidInputError
from elastream.experiments.base import MEASURES, Outcome
from elastream.experiments.curves import panels
from elastream.experiments.drawing import draw, page
from elastream.experiments.tables import (
    Cell,
    Verdict,
    cells,
    markdown,
    measured_with_spread,
    orderings,
    origins,
    shown,
    verdicts,
    write_csv,
)

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .7rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
td small { color: #777; display: block; }
img { max-width: 100%; }
"""


def write_outcome(outcome: Outcome, folder: Path) -> None:
    """Write `table.csv`, `table.md`, `figure.png` and `figure.html` of one experiment."""
    shapes = panels(outcome)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_csv(outcome, folder / "table.csv")
        (folder / "table.md").write_text(markdown(outcome), encoding="utf-8")
        interactive = page(outcome.experiment.title, shapes)
        (folder / "figure.html").write_text(interactive, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{folder}: cannot be written: {error.strerror}") from None
    draw(shapes, folder / "figure.png")


def write_report(outcomes: Sequence[Outcome], folder: Path) -> Path:
    """Write `report.html` over experiments whose own files are in folders below this one."""
    parts = "\n".join(_section(outcome, folder) for outcome in outcomes)
    target = folder / "report.html"
    target.write_text(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>elastream: experiments"
        f"</title>\n<style>{_STYLE}</style>\n<h1>Published and measured</h1>\n"
        "<p>In every cell: measured, and below it what the paper published, and of runs on "
        "Spark what the simulator says.</p>\n"
        f"{parts}\n</html>\n",
        encoding="utf-8",
    )
    return target


def _section(outcome: Outcome, folder: Path) -> str:
    experiment = outcome.experiment
    picture = base64.b64encode((folder / experiment.name / "figure.png").read_bytes()).decode()
    unlike = [text for text, verdict in orderings(outcome) if verdict is Verdict.REVERSED]
    verdict = f"<p>{verdicts(outcome)}"
    if unlike:
        verdict += "; these are the other way round:</p><ul>"
        verdict += "".join(f"<li>{escape(text)}</li>" for text in unlike) + "</ul>"
    else:
        verdict += ".</p>"
    notes = "".join(f"<p>{escape(text)}</p>" for text in experiment.notes.splitlines())
    return (
        f"<h2 id={experiment.name}>{escape(experiment.title)}</h2>\n"
        f"<p>Input: {escape(outcome.source)}. {escape(' '.join(origins(outcome)))}</p>\n"
        f"{_table(outcome)}\n{verdict}\n{notes}\n"
        f'<a href="{experiment.name}/figure.html"><img alt="{escape(experiment.title)}" '
        f'src="data:image/png;base64,{picture}"></a>'
    )


def _table(outcome: Outcome) -> str:
    head = "".join(f"<th>{escape(MEASURES[name])}</th>" for name in outcome.experiment.measures)
    body = "".join(
        f"<tr><td>{escape(row[0].label)}</td>"
        + "".join(
            f"<td>{measured_with_spread(c)}<small>{_beside(outcome, c)}</small></td>" for c in row
        )
        + "</tr>"
        for row in cells(outcome)
    )
    return f"<table><tr><th></th>{head}</tr>{body}</table>"


def _beside(outcome: Outcome, cell: Cell) -> str:
    published = shown(cell.published)
    return f"{published}; simulated {shown(cell.simulated)}" if outcome.simulated else published
