"""`rlearning`: learns which parallelism suits which input rate.

The reinforcement-learning baseline that DABS-Storm is compared with (its section 7.2): a table of
experience, built by a training phase and completed while the pipeline runs. It looks at the rate
alone and ignores queues, as in the paper. As the input does not depend on the decisions, learning
is a matter of averages: the value of a degree at a rate is the mean reward that it earned there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from elastream.core.decision import Plan, Reason
from elastream.core.equations import pa_sps
from elastream.core.stats import IntervalStats, OperatorStats
from elastream.core.topology import Operator
from elastream.errors import InvalidInputError
from elastream.policies.base import Context, Policy, clipped, unknown_cost

Experience = dict[int, dict[int, tuple[int, float]]]
"""Rate bucket -> degree -> how often it was tried, and the mean reward."""

_BUCKET = math.log(1.1)
"""Rates within 10 % of each other are alike."""
_BEHIND = 0.01
_FORMAT = "elastream rlearning 2"


def bucket(rate: float) -> int:
    """The bucket of this rate; all rates below one event per second share one."""
    return int(math.log(rate) / _BUCKET) + 1 if rate > 1 else 0


def reward(stats: OperatorStats, before: float, pool: int) -> float:
    """Minus the share of the pool that was used; if it fell behind, also minus 1 and the shortfall.

    Falling behind is measured: more waits than before, by more than 1 % of what came.

    Args:
        stats: What an operator did in an interval.
        before: What waited for it when that began.
        pool: How many replicas it could have had.

    >>> enough = OperatorStats(1000, 1000, 1000, queued=0, busy=2, active=2)
    >>> less = OperatorStats(1000, 500, 500, queued=500, busy=1, active=1)
    >>> reward(enough, 0.0, pool=8), reward(less, 0.0, pool=8)
    (-0.25, -1.625)
    """
    shortfall = (stats.queued - before) / stats.received if stats.received > 0 else 0.0
    return -stats.active / pool - (1 + shortfall if shortfall > _BEHIND else 0.0)


def experience(
    intervals: Sequence[IntervalStats], operator: Operator
) -> Iterator[tuple[float, int, float]]:
    """Rate, degree and reward of an operator in every interval of an episode."""
    waiting = 0.0
    for stats in intervals:
        of = stats.operators[operator.name]
        if of.active and of.received > 0:
            yield of.received / stats.duration, of.active, reward(of, waiting, operator.pool)
        waiting = of.queued


@dataclass(frozen=True)
class RLearning(Policy):
    """The degree with the best mean reward at the current rate, or at the nearest known one.

    One that was never trained, or has no experience at all, takes what PA-SPS equation 2 gives for
    the current rate.
    """

    table: Mapping[str, Experience] = field(default_factory=dict)
    """What was learned, per operator."""
    explore: float = 0.0
    """How often it tries another degree to learn from; only during training."""
    seed: int = 0

    name = "rlearning"
    paper = "DABS-Storm, section 7.2"

    def __post_init__(self) -> None:
        if not 0 <= self.explore <= 1:
            raise InvalidInputError(f"explore={self.explore} must be between 0 and 1")

    def decide(self, context: Context) -> Plan:
        """Look up the current rate in what was learned, before and since the start."""
        counts: dict[str, int] = dict(context.active)
        reasons: dict[str, tuple[Reason, ...]] = {}
        draw = np.random.default_rng([self.seed, context.stats.interval])
        for name, operator in context.topology.by_name.items():
            et = context.execution_times.get(name)
            if et is None:
                reasons[name] = (unknown_cost(),)
                continue
            rate = context.stats.operators[name].received / context.td
            known = learn(self.table.get(name, {}), experience(context.past, operator))
            counts[name], tried = self._degree(context, operator, rate, et, known)
            text = f"{rate:,.0f} events/s, at which {counts[name]} were best of {tried} tried"
            if draw.random() < self.explore:
                counts[name] = int(draw.integers(operator.minimum, operator.pool + 1))
                text = f"{rate:,.0f} events/s, at which {counts[name]} are tried"
            reasons[name] = (Reason("experience", {"rate": rate, "tried": tried}, text),)
        return Plan(counts, reasons)

    def _degree(
        self, context: Context, operator: Operator, rate: float, et: float, known: Experience
    ) -> tuple[int, int]:
        if operator.name not in self.table or not known:
            return pa_sps.replicas(rate, et, 1.0, operator.minimum, operator.pool), 0
        here = bucket(rate)
        tried = known[min(known, key=lambda other: (abs(other - here), other))]
        best = max(tried, key=lambda degree: (tried[degree][1], -degree))
        if tried[best][1] < -1:
            # It fell behind with every degree tried so far: try one more than the largest.
            best = max(tried) + 1
        return clipped(context, operator.name, best), len(tried)

    def after(self, episode: Sequence[IntervalStats], operators: Iterable[Operator]) -> RLearning:
        """The policy with what it learned from an episode; it no longer explores."""
        table = {
            operator.name: learn(self.table.get(operator.name, {}), experience(episode, operator))
            for operator in operators
        }
        return RLearning(table)

    def save(self, path: Path) -> None:
        """Write the table to a file."""
        try:
            path.write_text(json.dumps({"format": _FORMAT, "table": self.table}))
        except OSError as error:
            raise InvalidInputError(f"{path}: cannot be written: {error.strerror}") from None

    @classmethod
    def load(cls, path: Path) -> RLearning:
        """Read the table from a file that `save` wrote."""
        try:
            content = json.loads(path.read_text())
            if content["format"] != _FORMAT:
                raise KeyError(content["format"])
            table = {
                name: {
                    int(here): {int(k): (int(n), float(mean)) for k, (n, mean) in tried.items()}
                    for here, tried in experience.items()
                }
                for name, experience in content["table"].items()
            }
        except OSError as error:
            raise InvalidInputError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInputError(f"{path}: is not a table that rlearning saved") from None
        return cls(table)


def learn(before: Experience, tries: Iterable[tuple[float, int, float]]) -> Experience:
    """The experience extended by these tries of a degree at a rate, each with its reward."""
    after = {here: dict(tried) for here, tried in before.items()}
    for rate, degree, earned in tries:
        tried = after.setdefault(bucket(rate), {})
        count, mean = tried.get(degree, (0, 0.0))
        tried[degree] = count + 1, mean + (earned - mean) / (count + 1)
    return after
