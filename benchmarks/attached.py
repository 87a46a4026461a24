"""What scaling an attached query costs and what it saves, beside the other ways to do it.

    python -m benchmarks.attached --draw FILE

Every run is a cell: a process of its own with a local standalone cluster of four executors of one
core each, and input that peaks at 65 % of what the four could do. Rows wait and do not compute, so
two real cores are enough; planning batches and starting executors do compute. How it was set up,
and why:

* A trigger interval of 5 s: on two cores a batch costs about half a second beside its rows, and an
  executor takes some seconds to come. A shorter interval would measure these two.
* Two of the three spikes of the trace `spiky`, three times as fast as they were recorded, take
  270 s. The faster the input, the less can be foreseen: what comes and goes within an executor's
  lead time cannot be forecast, and there nothing is saved. In the simulation
  (`tests/support/micro_batches.py`), `attach` has 72 % of the executor-seconds of the maximum at
  the same p99 (8.55 s); six times as fast as recorded (`--seconds 135`) 73 % at 8.79 s. The
  defaults of `attach` were chosen with this trace in that simulation.
* Dynamic allocation and `attach`, which are held to targets, run three times, in turns; the other
  ways once, in between. Give `--repeats` and `--others` for more.
* Cells run one after the other: side by side, the executors that one starts would slow the other.

All of it takes about 65 minutes on a machine that has nothing else to do. Every cell is kept in
`--keep` as soon as it is done, and the same command goes on where it was stopped, with the cells of
the same commit. Delete the file to begin anew, for instance after a change that is not committed.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.attached_cell import Setting
from benchmarks.attached_picture import draw
from benchmarks.command import described
from benchmarks.measure import Figure, report
from benchmarks.record import commit

KINDS = {
    "max": "fixed at the maximum",
    "mean": "fixed at the mean",
    "dynamic": "Spark's dynamic allocation",
    "lean": "dynamic allocation, asking for less",
    "reactive": "reactive",
    "slots": "slots",
    "attach": "attach",
}
HELD = ("dynamic", "attach")
"""The ways that targets are about."""
KEPT = Path("out/attached.jsonl")
SHARE, OVERHEAD = 0.8, 0.02
SHOWN = 4000
"""Of what a failed run wrote to standard error: how many of the last characters."""

Cells = Mapping[str, Sequence[Mapping[str, Any]]]


def main(arguments: Sequence[str] | None = ()) -> bool:
    """Run what is missing, compare and draw; returns whether every target was met."""
    parser = described(__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="of dynamic and attach")
    parser.add_argument("--others", type=int, default=1, help="repeats of all other ways")
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of them, with commas")
    parser.add_argument("--only", choices=["comparison", "overhead"])
    parser.add_argument("--seconds", type=float, default=270.0, help="of input, in every run")
    parser.add_argument("--trigger", type=float, default=5.0, help="seconds")
    parser.add_argument("--trace", default="spiky")
    parser.add_argument("--keep", type=Path, default=KEPT, help="cells that are done, as JSON")
    parser.add_argument("--draw", type=Path, help="a picture of the last run of every way")
    asked = parser.parse_args(arguments)
    kinds = asked.kinds.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"--kinds: {', '.join(sorted(unknown))}: there are {', '.join(KINDS)}")
    one = Setting("", asked.seconds, asked.trace, asked.trigger)
    compares, measures_overhead = asked.only != "overhead", asked.only != "comparison"
    wanted = list(order(kinds, asked.repeats, asked.others)) if compares else []
    wanted += ["overhead"] if measures_overhead else []
    cells = run([replace(one, kind=kind) for kind in wanted], asked.keep)
    overheads = cells.pop("overhead", [])
    met = compared(cells) if cells else True
    if cells and asked.draw:
        draw(cells, KINDS, asked.draw)
    return overhead(overheads[-1]) and met if overheads else met


def order(kinds: Sequence[str], repeats: int, others: int) -> Iterator[str]:
    """The ways that are held to targets in turns, and all others in between.

    >>> list(order(["max", "mean", "dynamic", "attach"], repeats=3, others=1))
    ['dynamic', 'attach', 'max', 'attach', 'dynamic', 'mean', 'dynamic', 'attach']
    """
    held = [kind for kind in HELD if kind in kinds]
    rest = [kind for _ in range(others) for kind in kinds if kind not in HELD]
    for turn in range(repeats):
        # What disturbs the machine for a while must not always hit the same one.
        yield from held[:: -1 if turn % 2 else 1]
        share = -(-len(rest) // (repeats - turn))
        yield from rest[:share]
        rest = rest[share:]
    yield from rest


def run(settings: Sequence[Setting], keep: Path) -> dict[str, list[dict[str, Any]]]:
    """The cells of these settings, by way: those that this commit has kept, and the others now."""
    cells: dict[str, list[dict[str, Any]]] = {}
    missing, now, others = list(settings), commit(), 0
    for found in kept(keep):
        setting = Setting(**found["setting"])
        if found.get("commit") != now:
            others += setting in settings
        elif setting in missing:
            missing.remove(setting)
            cells.setdefault(setting.kind, []).append(found)
    done = len(settings) - len(missing)
    if done:
        tell(f"{done} of {len(settings)} cells are kept in {keep}; delete it to begin anew")
    if others:
        tell(f"{others} cells in {keep} are left aside: another commit than {now} made them")
    keep.parent.mkdir(parents=True, exist_ok=True)
    for place, setting in enumerate(missing):
        left = sum(each.lasts for each in missing[place:])
        tell(
            f"cell {done + place + 1} of {len(settings)}, {setting.kind}; {left / 60:.0f} min left"
        )
        began = time.monotonic()
        found = {"commit": commit(), **cell(setting)}
        with keep.open("a") as file:
            file.write(json.dumps(found) + "\n")
        cells.setdefault(setting.kind, []).append(found)
        tell(f"  {summed_up(found)}, in {time.monotonic() - began:.0f} s")
    return cells


def kept(file: Path) -> list[dict[str, Any]]:
    """The cells that an earlier call has kept."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def cell(setting: Setting) -> dict[str, Any]:
    """One run, in a process of its own; if it fails, what it wrote is shown."""
    words = [sys.executable, "-m", "benchmarks.attached_cell", json.dumps(asdict(setting))]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{setting} has failed:\n{done.stderr[-SHOWN:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def tell(words: str) -> None:
    """What it is at, beside the tables."""
    print(words, file=sys.stderr, flush=True)


def summed_up(found: Mapping[str, Any]) -> str:
    """A cell in one line."""
    if "pairs" in found:
        return f"{len(found['pairs'])} pairs"
    lead = f", lead time {found['lead']:.1f} s" if found["lead"] else ""
    return f"{found['executor_seconds']:,.0f} executor-seconds, p99 {found['p99']:.2f} s{lead}"


def middle(cells: Sequence[Mapping[str, Any]], name: str) -> float:
    """The median over runs."""
    return statistics.median(float(each[name]) for each in cells)


def spread(cells: Sequence[Mapping[str, Any]], name: str) -> str:
    """The smallest and the largest."""
    values = [float(each[name]) for each in cells]
    return f"{min(values):,.1f} to {max(values):,.1f}"


def compared(cells: Cells) -> bool:
    """All ways beside one another, and what `attach` is held to."""
    figures = []
    for kind in (kind for kind in KINDS if kind in cells):
        runs = cells[kind]
        cost, p50, p99 = (middle(runs, name) for name in ("executor_seconds", "p50", "p99"))
        text = f"{cost:,.0f} executor-seconds, p50 {p50:.2f} s, p99 {p99:.2f} s"
        text += f", largest backlog {middle(runs, 'backlog'):,.0f} rows"
        undone = sum(run["undone"] for run in runs)
        text += f", {undone:,} rows never done" if undone else ""
        figures.append(Figure(KINDS[kind], text))
        if len(runs) > 1:
            costs, tails = spread(runs, "executor_seconds"), spread(runs, "p99")
            figures.append(
                Figure(f"  {len(runs)} runs", f"{costs} executor-seconds, p99 {tails} s")
            )
    if "attach" in cells:
        figures += held(cells)
    return report("attached: executors of a query", figures)


def held(cells: Cells) -> list[Figure]:
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
            Figure(f"p99, of that of: {KINDS[kind]}", f"{slower:.1%}", "at most 100%", slower <= 1),
        ]
    beaten = [
        KINDS[kind]
        for kind, runs in cells.items()
        if middle(runs, "executor_seconds") < middle(ours, "executor_seconds")
        and middle(runs, "p99") < middle(ours, "p99")
    ]
    better = ", ".join(beaten) or "none"
    return [*figures, Figure("cheaper and quicker at once", better, "none", not beaten)]


def overhead(found: Mapping[str, Any]) -> bool:
    """What being attached to costs a query: the median of neighbouring stretches of one run."""
    changes = sorted(with_it / without - 1 for without, with_it in found["pairs"])
    more = statistics.median(changes)
    without = statistics.median(without for without, _ in found["pairs"])
    return report(
        "attached: overhead",
        [
            Figure("a batch, not attached to", f"{without:.3f} s"),
            Figure(
                f"attached to: longer by, median of {len(changes)} pairs", f"{more:+.1%}",
                f"below {OVERHEAD:+.0%}", more < OVERHEAD,
            ),
            Figure("  all pairs", f"{changes[0]:+.1%} to {changes[-1]:+.1%}"),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(not main(None))
