"""The frontier: the cost and the latency of `slo` and of the papers' policies, beside an oracle's.

Four operators in a line, 1.317 ms each, pools of 8 (PA-SPS section 4). Every trace is played with a
step a second, cut after `LONGEST` seconds, and scaled down where its peak is above 90 % of what the
pools can do. Events arrive at random, as a Poisson process, and the simulator's steps are 0.05 s
long: a rate that stands still within a second would flatter a quick clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elastream.control import Cycle
from elastream.control.run import Run, inputs_per_interval
from elastream.engines.simulation import Arrivals, SimulationSettings
from elastream.experiments.work import Advance
from elastream.figures import new_figure, save
from elastream.policies import POLICIES
from elastream.policies.base import Policy
from elastream.policies.oracle import Oracle
from elastream.policies.slo import Slo
from elastream.predictors import PREDICTORS
from elastream.workloads.applications import twitter
from elastream.workloads.traces import Trace, evenly

LONGEST = 600
LOAD = 0.9
OBJECTIVE_MS = 500.0
STEP = 0.05
ORACLE_TD = 1.0
CLOCKS = (0.25, 1.0, 5.0, 30.0)
COLOURS = ("#c8500a", "#1f5fa8", "#3f8f4f", "0.6")
"""Of the points in pictures, by the clock."""
NAME_WIDTH, NAME_HEIGHT = 0.14, 0.05
"""Of a name in a picture, relative to its size."""
FITTED = ("fft", "ann", "rf")
"""Models that are fitted anew for every forecast: too slow for one a second."""
FITTED_CLOCKS = (5.0, 30.0)


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy with a predictor, on a clock."""

    policy: Callable[[], Policy]
    name: str
    predictor: str
    td: float

    @property
    def label(self) -> str:
        """As tables and pictures call it."""
        model = f" {self.predictor}" if self.predictor != "-" else ""
        return f"{self.name}{model} {self.td:g} s"


def contenders() -> tuple[Contender, ...]:
    """`slo`, and the papers' policies that need no training, with the predictors that suit them.

    Not `rlearning`: its table would have to come from input like that. Not `regression`, `arima`
    and `svr`, which other papers have for policies of their own.
    """
    found = [Contender(lambda: Slo(OBJECTIVE_MS / 1000), "slo", "auto", Slo.td)]
    for name, predictors in (
        ("pa-sps", ("basic", "lr", *FITTED, "auto")),
        ("presps", ("-",)),
        ("srea", ("-",)),
        ("spea", ("auto",)),
        ("cba", ("auto",)),
        ("autoscale+", ("-",)),
        ("incremental", ("-",)),
    ):
        for predictor in predictors:
            clocks = FITTED_CLOCKS if predictor in FITTED else CLOCKS
            found += [Contender(POLICIES[name], name, predictor, td) for td in clocks]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Point:
    """The result of one contender on one trace."""

    label: str
    cost: float
    """Replica-seconds, relative to the oracle's."""
    p99_ms: float
    changes: int
    priced: float
    """The cost with the price of all changes."""

    def dominates(self, other: Point) -> bool:
        """Whether it is no worse in both, and better in one."""
        no_worse = self.cost <= other.cost and self.p99_ms <= other.p99_ms
        return no_worse and (self.cost, self.p99_ms) != (other.cost, other.p99_ms)


@dataclass(frozen=True, slots=True)
class Frontier:
    """All contenders on one trace; the oracle is the first point."""

    trace: str
    points: tuple[Point, ...]

    def undominated(self) -> Iterator[Point]:
        """The contenders that none of the others dominates."""
        others = self.points[1:]
        return (one for one in others if not any(other.dominates(one) for other in others))

    def dominated_by(self, point: Point) -> list[str]:
        """Whom a contender beats in both."""
        return [other.label for other in self.points[1:] if point.dominates(other)]


def prepared(trace: Trace, longest: int = LONGEST) -> Trace:
    """The trace as it is played; see the module's docstring."""
    rates = trace.rates[:longest]
    topology = twitter().topology
    operator = topology.operators[0]
    most = LOAD * operator.pool / (operator.execution_time or math.inf)
    peak = float(rates.max())
    return evenly(rates * min(1.0, most / peak) if peak > 0 else rates)


def steps(trace: Trace, chosen: Sequence[Contender]) -> int:
    """How many intervals all runs on a trace have together."""
    length = prepared(trace).duration
    return sum(math.ceil(length / td - 1e-9) for td in (ORACLE_TD, *(each.td for each in chosen)))


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run on a trace took."""

    replica_seconds: float
    p99_ms: float
    changes: int

    @property
    def priced(self) -> float:
        """Replica-seconds, and the price of all changes."""
        return self.replica_seconds + Slo.change_cost * self.changes

    def beside(self, best: Spent, label: str) -> Point:
        """As a point, relative to the oracle's replica-seconds."""
        cost, priced = (each / best.replica_seconds for each in (self.replica_seconds, self.priced))
        return Point(label, cost, self.p99_ms, self.changes, priced)


AfterEach = Callable[[Cycle], object]
"""Told of every cycle; what it raises ends the run."""


@dataclass(frozen=True, slots=True)
class Race:
    """A trace as all contenders get it."""

    trace: Trace
    settings: SimulationSettings

    @classmethod
    def on(
        cls,
        trace: Trace,
        seed: int = 0,
        arrivals: Arrivals = Arrivals.POISSON,
        longest: int = LONGEST,
    ) -> Race:
        """The beginning of a trace, prepared."""
        settings = SimulationSettings(step=STEP, arrivals=arrivals, seed=seed)
        return cls(prepared(trace, longest), settings)

    def oracle(self, after_each: AfterEach) -> Spent:
        """What everybody is compared with."""
        oracle = Oracle(future=tuple(inputs_per_interval(self.trace, ORACLE_TD)))
        return self._run(oracle, "basic", ORACLE_TD, after_each)

    def run(self, contender: Contender, after_each: AfterEach) -> Spent:
        """The whole of it for one contender."""
        model = "basic" if contender.predictor == "-" else contender.predictor
        return self._run(contender.policy(), model, contender.td, after_each)

    def _run(self, policy: Policy, predictor: str, td: float, after_each: AfterEach) -> Spent:
        application = twitter()
        each = application.topology.operators[0].execution_time or 0.0
        first = max(math.ceil(self.trace.rates[0] * each), 1)
        begun = replace(self.settings, initial=dict.fromkeys(application.topology.by_name, first))
        run = Run(application, self.trace, policy, PREDICTORS[predictor](), td, settings=begun)
        result = run.simulate(after_each)
        metrics = result.metrics
        return Spent(
            metrics.replica_seconds,
            metrics.latency_ms.p99 if metrics.latency_ms else 0.0,
            sum(len(cycle.changes) for cycle in result.cycles),
        )


def measured(
    name: str, trace: Trace, chosen: Sequence[Contender], advance: Advance, seed: int = 0
) -> Frontier:
    """Run the oracle and all contenders on a trace."""
    race = Race.on(trace, seed)

    def after_each(cycle: Cycle) -> None:
        advance(1)

    best = race.oracle(after_each)
    points = [best.beside(best, f"oracle {ORACLE_TD:g} s")]
    points += [race.run(each, after_each).beside(best, each.label) for each in chosen]
    return Frontier(name, tuple(points))


def markdown(frontiers: Sequence[Frontier]) -> str:
    """One table of all traces, and who dominates whom."""
    lines = [
        "| trace | policy | replica-seconds relative to the oracle | p99 (ms) | changes | keeps "
        f"{OBJECTIVE_MS:g} ms | dominated |",
        "| --- | --- | ---: | ---: | ---: | --- | --- |",
    ]
    for frontier in frontiers:
        best = set(frontier.undominated())
        for point in frontier.points:
            kept = "yes" if point.p99_ms <= OBJECTIVE_MS else "no"
            on = "" if point in best or point is frontier.points[0] else "yes"
            lines.append(
                f"| {frontier.trace} | {point.label} | {point.cost:.3f} | {point.p99_ms:,.0f} "
                f"| {point.changes:,} | {kept} | {on} |"
            )
    lines.append("")
    for frontier in frontiers:
        for point in frontier.undominated():
            beaten = frontier.dominated_by(point)
            told = ", ".join(beaten) or "nobody"
            lines.append(f"- {frontier.trace}: {point.label} dominates {told}")
    return "\n".join(lines) + "\n"


def draw(frontier: Frontier, target: Path) -> Path:
    """One picture: cost against latency, the oracle in the corner, every interval in its colour."""
    figure = new_figure(8, 5)
    axes = figure.subplots()
    oracle, *others = frontier.points
    for td, colour in zip(CLOCKS, COLOURS, strict=True):
        end = f" {td:g} s"
        mine = [point for point in others if point.label.endswith(end)]
        spots = [point.cost for point in mine], [point.p99_ms for point in mine]
        axes.plot(*spots, "o", color=colour, label=f"decides every{end}", markersize=5, alpha=0.8)
    axes.plot(oracle.cost, oracle.p99_ms, "k*", markersize=12, label="oracle, every 1 s")
    axes.axhline(OBJECTIVE_MS, color="0.4", linestyle="--", linewidth=1, label="the objective")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    best = {*frontier.undominated(), *(each for each in others if _is_ours(each))}
    _name(axes, [point for point in best if point.p99_ms <= OBJECTIVE_MS])
    axes.set_xlabel("replica-seconds, relative to the oracle's")
    axes.set_ylabel("p99 latency (ms)")
    axes.set_title(f"{frontier.trace}: the lower left is best", loc="left", fontsize=10)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return save(figure, target)


def _name(axes: Any, points: Sequence[Point]) -> None:
    """Write names above or below their points, ours first, where no other name is."""
    taken: list[tuple[float, float]] = []
    axes.autoscale_view()
    place = axes.transData + axes.transAxes.inverted()
    for point in sorted(points, key=lambda one: (not _is_ours(one), one.cost, one.p99_ms)):
        ours, where = _is_ours(point), (point.cost, point.p99_ms)
        if ours:
            axes.plot(*where, "o", color=COLOURS[0], markersize=11)
        x, y = place.transform(where)
        for above in (True, False):
            spot = x, y + (NAME_HEIGHT if above else -NAME_HEIGHT)
            if all(abs(x - a) > NAME_WIDTH or abs(spot[1] - b) > NAME_HEIGHT for a, b in taken):
                taken.append(spot)
                axes.annotate(
                    point.label.rsplit(maxsplit=2)[0],
                    where,
                    (4, 8 if above else -8),
                    textcoords="offset points",
                    verticalalignment="bottom" if above else "top",
                    fontsize=8,
                    fontweight="bold" if ours else "normal",
                )
                break


def _is_ours(point: Point) -> bool:
    return point.label.startswith("slo")
