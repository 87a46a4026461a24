"""`slo` on every trace in the simulator: does it keep its objective, at close to the least cost?

Four operators of 1.317 ms, pools of 8, an objective of 500 ms at p99, steady and Poisson arrivals,
steps of 0.05 s. On every trace `slo` must keep the objective, or be within 1.6 of the p99 of the
oracle with a clock of 1 s, with at most 1.06 times its replica-seconds; and no published policy
that keeps the objective may be more than 2 % cheaper, at any clock: all contenders of the frontier
are tried. Traces of the catalogue are also made with other seeds, and there are shapes that are in
no catalogue. The constants of `slo` were chosen with the seeds 11, 12, 21 and 22, and the shapes of
seed 8, in sight. The defaults here were not: take others again if you change a constant.

All of it takes hours. `--rivals` takes only contenders whose labels begin so, `--ours` none.
`python -m benchmarks.acceptance [--seconds 600] [--seeds 31 32] [--trace NAME=FILE ...]
[--only NAME ...] [--rivals LABEL ...]`
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.measure import Figure, report
from elastream.engines.simulation import Arrivals
from elastream.experiments.frontier import OBJECTIVE_MS, Contender, Frontier, contenders, measured
from elastream.policies.slo import Slo
from elastream.workloads import TRACES
from elastream.workloads.traces import Trace, evenly, load_trace

SECONDS = 600
BESIDE_ORACLE, MOST_COST, CHEAPER = 1.6, 1.06, 0.02
SEEDS = (31, 32)


def new_shapes(seed: int) -> dict[str, Trace]:
    """Inputs of other characters than those of the catalogue."""
    random = np.random.default_rng(seed)
    seconds = np.arange(600.0)
    walk = np.exp(np.cumsum(random.normal(0, 0.05, len(seconds))))
    on = np.repeat(random.random(60) < 0.35, 10)
    return {
        "sawtooth": evenly(500 + 4000 * (seconds % 45) / 45),
        "walk": evenly(2500 * walk / walk.mean()),
        "on-off": evenly(np.where(on, 4200.0, 250.0)),
        "bursts": evenly(800 + 900 * random.pareto(2.2, len(seconds))),
        "waves": evenly(2500 + 1500 * np.sin(seconds / 4) + 700 * np.sin(seconds / 31)),
        "constant": evenly(np.full(600, 3300.0)),
    }


def traces(recorded: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[str, Trace, int]]:
    """Each with its name and the seed of the simulator."""
    for name in TRACES:
        yield name, TRACES[name](), 0
    for option in recorded:
        name, _, file = option.partition("=")
        yield name, load_trace(Path(file), fill_gaps=True), 0
    for name in ("raw", "dns", "logs", "erratic", "fluctuating"):
        for seed in seeds:
            yield f"{name}, seed {seed}", TRACES[name](seed=seed), seed
    for name, trace in new_shapes(seeds[0]).items():
        yield name, trace, seeds[0]


def rivals(beginnings: Sequence[str]) -> tuple[Contender, ...]:
    """`slo`, and what might keep the objective for less."""
    ours, *published = contenders()
    assert isinstance(ours.policy(), Slo)
    return ours, *(each for each in published if each.label.startswith(tuple(beginnings)))


def judged(frontier: Frontier) -> Figure:
    """The verdict on one trace."""
    oracle, ours, *others = frontier.points
    most = max(OBJECTIVE_MS, BESIDE_ORACLE * oracle.p99_ms)
    keeping = [other for other in others if other.p99_ms <= OBJECTIVE_MS]
    cheapest = min(keeping, key=lambda point: point.cost, default=None)
    told = f"p99 {ours.p99_ms:,.0f} ms, cost {ours.cost:.3f}, {ours.changes:,} changes"
    target = f"{most:,.0f} ms, {MOST_COST}"
    met = ours.p99_ms <= most and ours.cost <= MOST_COST
    if cheapest is not None:
        target += f"; {cheapest.label}: {cheapest.p99_ms:,.0f} ms, {cheapest.cost:.3f}"
        met = met and ours.cost <= cheapest.cost / (1 - CHEAPER)
    return Figure(frontier.trace, told, target, met)


def main(arguments: Sequence[str] | None = ()) -> bool:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--trace", action="append", default=[], help="NAME=FILE")
    parser.add_argument("--only", action="append", default=[], help="traces whose names begin so")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--rivals", nargs="+", default=[""], help="whose labels begin so")
    parser.add_argument("--ours", action="store_true", help="leave the published policies out")
    asked = parser.parse_args(arguments)
    chosen = rivals([] if asked.ours else asked.rivals)
    figures = []
    for name, trace, seed in traces(asked.trace, asked.seeds):
        if asked.only and not name.startswith(tuple(asked.only)):
            continue
        for arrivals in Arrivals:
            label = f"{name}, {arrivals.value}"
            found = measured(label, trace, chosen, lambda done: None, seed, arrivals, asked.seconds)
            figures.append(judged(found))
            sys.stderr.write(f"{figures[-1]}\n")
    title = f"slo, {OBJECTIVE_MS:.0f} ms at p99, the first {asked.seconds} s of every trace"
    return report(title, figures)


if __name__ == "__main__":
    raise SystemExit(not main(None))
