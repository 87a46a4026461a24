"""What scaling an attached query costs and what it saves, beside the other ways to do it.

`python -m benchmarks.attached` runs every way in turn, several times, each in a process of its own
on a local standalone cluster of four executors with one core each. Rows wait and do not compute, so
two real cores are enough; planning and starting executors do compute, which the long trigger
interval leaves time for. All of it takes two and a half hours; `--short` compares the four most
important ways once, in about twenty minutes. `--draw FILE` draws the last run of each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.attached_cell import Setting
from benchmarks.measure import Figure, report
from elastream.figures import new_figure, save

KINDS = {
    "max": "fixed at the maximum",
    "mean": "fixed at the mean",
    "dynamic": "Spark's dynamic allocation",
    "lean": "dynamic allocation, asking for less",
    "reactive": "reactive",
    "slots": "slots",
    "attach": "attach",
}
SHORT = {"seconds": 180.0, "repeats": 1, "kinds": "max,mean,dynamic,attach"}
SHARE, OVERHEAD = 0.8, 0.02
SHOWN = 4000
"""Of what a failed run wrote to standard error: how many of the last characters."""


def cell(setting: Setting) -> dict[str, Any]:
    """One run, in a process of its own; if it fails, what it wrote is shown."""
    words = [sys.executable, "-m", "benchmarks.attached_cell", json.dumps(asdict(setting))]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{setting} has failed:\n{done.stderr[-SHOWN:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def middle(cells: Sequence[Mapping[str, Any]], name: str) -> float:
    """The median over runs."""
    return statistics.median(float(each[name]) for each in cells)


def spread(cells: Sequence[Mapping[str, Any]], name: str) -> str:
    """The smallest and the largest."""
    values = [float(each[name]) for each in cells]
    return f"{min(values):,.1f} to {max(values):,.1f}" if len(values) > 1 else ""


def compared(cells: Mapping[str, Sequence[Mapping[str, Any]]]) -> bool:
    """All ways beside one another, and what `attach` is held to."""
    figures = []
    for kind, runs in cells.items():
        cost, p50, p99 = (middle(runs, name) for name in ("executor_seconds", "p50", "p99"))
        text = f"{cost:,.0f} executor-seconds, p50 {p50:.1f} s, p99 {p99:.1f} s"
        text += f", largest backlog {middle(runs, 'backlog'):,.0f} rows"
        undone = sum(run["undone"] for run in runs)
        text += f", {undone:,} rows never done" if undone else ""
        figures.append(Figure(KINDS[kind], text))
        if len(runs) > 1:
            costs, tails = spread(runs, "executor_seconds"), spread(runs, "p99")
            figures.append(Figure("", f"{costs} executor-seconds, p99 {tails} s"))
    if "attach" in cells:
        figures += held(cells)
    return report("attached: executors of a query", figures)


def held(cells: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Figure]:
    """The targets of `attach`: against dynamic allocation, however it is tuned, and all others."""
    ours, figures = cells["attach"], []
    for kind in ("dynamic", "lean"):
        if kind not in cells:
            continue
        share = middle(ours, "executor_seconds") / middle(cells[kind], "executor_seconds")
        slower = middle(ours, "p99") / middle(cells[kind], "p99")
        figures += [
            Figure(
                f"executor-seconds, of those of: {KINDS[kind]}",
                f"{share:.0%}",
                f"at most {SHARE:.0%}",
                share <= SHARE,
            ),
            Figure(f"p99, of that of: {KINDS[kind]}", f"{slower:.0%}", "at most 100%", slower <= 1),
        ]
    beaten = [
        KINDS[kind]
        for kind, runs in cells.items()
        if middle(runs, "executor_seconds") < middle(ours, "executor_seconds")
        and middle(runs, "p99") < middle(ours, "p99")
    ]
    better = ", ".join(beaten) or "none"
    return [*figures, Figure("cheaper and quicker at once", better, "none", not beaten)]


def overhead(asked: Setting) -> bool:
    """What being attached to costs a query."""
    found = cell(asked)
    with_it, without = (statistics.median(found[name]) for name in ("with", "without"))
    more = with_it / without - 1
    count = min(len(found["with"]), len(found["without"]))
    return report(
        "attached: overhead",
        [
            Figure("a batch, not attached to", f"{without:.3f} s"),
            Figure(
                f"attached to, {count} batches each", f"{with_it:.3f} s ({more:+.1%})",
                f"below {OVERHEAD:+.0%}", more < OVERHEAD,
            ),
        ],
    )  # fmt: skip


def draw(cells: Mapping[str, Sequence[Mapping[str, Any]]], file: Path) -> None:
    """Input, executors and latency over time, of the last run of every way."""
    figure = new_figure(11, 9)
    top, middle_panel, bottom = figure.subplots(3, 1, sharex=True)
    last = {kind: runs[-1] for kind, runs in cells.items()}
    any_run = next(iter(last.values()))
    warm_up = len(any_run["rates"]) - int(any_run["setting"]["seconds"])
    seconds = [second - warm_up for second in range(len(any_run["rates"]))]
    top.plot(seconds, any_run["rates"], color="0.5")
    top.set_title("input (rows/s)", loc="left", fontsize=10)
    for kind, run in last.items():
        strong = {"linewidth": 2.5 if kind == "attach" else 1.2, "label": KINDS[kind]}
        (line,) = middle_panel.step(run["times"], run["counts"], where="post", **strong)
        commits = [(when, longest) for when, _, longest in run["commits"]]
        bottom.plot(*zip(*commits, strict=True), color=line.get_color(), **strong)
    middle_panel.set_title("executors (processes)", loc="left", fontsize=10)
    middle_panel.set_ylim(0, any_run["setting"]["most"] + 0.5)
    middle_panel.legend(ncols=3, frameon=False, fontsize=8, loc="upper right")
    bottom.set_title("longest latency of a batch's rows (s)", loc="left", fontsize=10)
    bottom.set_yscale("log")
    bottom.set_xlabel("seconds")
    top.set_xlim(0, int(any_run["setting"]["seconds"]))
    save(figure, file)


def main(arguments: Sequence[str] = ()) -> bool:
    """Run, compare and draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attached")
    parser.add_argument("--seconds", type=float, default=300.0, help="of the trace, in every run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--trace", default="spiky")
    parser.add_argument("--trigger", type=float, default=10.0)
    parser.add_argument("--executors", type=int, default=4, help="the most")
    parser.add_argument("--tasks", type=int, default=16, help="of a batch")
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of them, with commas")
    parser.add_argument("--draw", type=Path)
    parser.add_argument("--keep", type=Path, help="write what was measured, as JSON")
    parser.add_argument("--only", choices=["comparison", "overhead"])
    parser.add_argument("--short", action="store_true", help="four ways, once each: 20 minutes")
    if parser.parse_args(arguments).short:
        parser.set_defaults(**SHORT)
    asked = parser.parse_args(arguments)
    met = True
    if asked.only != "overhead":
        cells: dict[str, list[dict[str, Any]]] = {kind: [] for kind in asked.kinds.split(",")}
        for _ in range(asked.repeats):
            for kind, runs in cells.items():
                runs.append(cell(setting(kind, asked)))
                told = {name: round(runs[-1][name], 1) for name in ("executor_seconds", "p99")}
                print(KINDS[kind], told, file=sys.stderr, flush=True)
                if asked.keep:
                    asked.keep.write_text(json.dumps(cells))
        met = compared(cells)
        if asked.draw:
            draw(cells, asked.draw)
    if asked.only != "comparison":
        met = overhead(setting("overhead", asked)) and met
    return met


def setting(kind: str, asked: argparse.Namespace) -> Setting:
    """One cell, as asked for on the command line."""
    return Setting(
        kind,
        asked.seconds,
        asked.trace,
        asked.trigger,
        most=asked.executors,
        tasks=asked.tasks,
    )


if __name__ == "__main__":
    raise SystemExit(not main(sys.argv[1:]))
