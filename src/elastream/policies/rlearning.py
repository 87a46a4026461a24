"""`rlearning`: learns which parallelism suits which input rate.

The reinforcement-learning baseline that DABS-Storm is compared with (its section 7.2): a table of
experience, built by a training phase and completed while the pipeline runs. As the input does not
depend on what is decided, learning is a matter of averages: the value of a degree at a rate is the
mean reward that it earned there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from elastream.core.decision import Plan, Reason
from elastream.core.equations import pa_sps
from elastream.core.topology import Operator
from elastream.errors import InvalidInputError
from elastream.policies.base import Context, Policy, clipped, unknown_cost

Experience = dict[int, dict[int, tuple[int, float]]]
"""Rate bucket -> degree -> how often it was tried, and the mean reward."""

_BUCKET = math.log(1.1)
"""Rates within 10 % of each other are alike."""
_FORMAT = "elastream rlearning 1"


def bucket(rate: float) -> int:
    """The class of rates that this one belongs to; rates below one event per second are alike."""
    return int(math.log(rate) / _BUCKET) + 1 if rate > 1 else 0


def reward(rate: float, execution_time: float, degree: int, pool: int) -> float:
    """Minus the part of the pool that is used, and minus the overload and one more if there is any.

    >>> reward(1000, 0.002, degree=2, pool=8), reward(1000, 0.002, degree=1, pool=8)
    (-0.25, -2.125)
    """
    overload = rate * execution_time / degree - 1
    return -degree / pool - (1 + overload if overload > 1e-9 else 0.0)


@dataclass(frozen=True)
class RLearning(Policy):
    """The degree with the best mean reward at the current rate, or at the nearest known one.

    Without any experience it takes what PA-SPS equation 2 gives for the current rate.
    """

    table: Mapping[str, Experience] = field(default_factory=dict)
    """What was learned, per operator: see `train` and `load`."""

    name = "rlearning"
    paper = "DABS-Storm, section 7.2"

    def decide(self, context: Context) -> Plan:
        """Look the current rate up, in what was learned before and since."""
        counts: dict[str, int] = dict(context.active)
        reasons: dict[str, tuple[Reason, ...]] = {}
        for name, operator in context.topology.by_name.items():
            et = context.execution_times.get(name)
            if et is None:
                reasons[name] = (unknown_cost(),)
                continue
            stats = context.stats.operators[name]
            rate = (stats.received + stats.queued) / context.td
            known = learn(self.table.get(name, {}), _observed(context, operator, et))
            counts[name], tried = self._degree(context, operator, rate, et, known)
            text = f"{rate:,.0f} events/s, at which {counts[name]} were best of {tried} tried"
            reasons[name] = (Reason("experience", {"rate": rate, "tried": tried}, text),)
        return Plan(counts, reasons)

    def _degree(
        self, context: Context, operator: Operator, rate: float, et: float, known: Experience
    ) -> tuple[int, int]:
        enough = pa_sps.replicas(rate, et, 1.0, operator.minimum, operator.pool)
        if not known:
            return enough, 0
        here = bucket(rate)
        tried = known[min(known, key=lambda other: (abs(other - here), other))]
        best = max(tried, key=lambda degree: (tried[degree][1], -degree))
        if tried[best][1] < -1:
            # All that was tried was too little: try what should be enough.
            best = max(best, enough)
        return clipped(context, operator.name, best), len(tried)

    @classmethod
    def train(
        cls,
        operators: Mapping[str, Operator],
        rates: Mapping[str, Iterable[float]],
        execution_times: Mapping[str, float],
        rounds: int = 20,
        seed: int = 0,
    ) -> RLearning:
        """Learn from recorded rates, in events/s, by trying degrees at random `rounds` times."""
        draw = np.random.default_rng(seed)
        table: dict[str, Experience] = {}
        for name, operator in operators.items():
            tries = [
                (rate, int(draw.integers(operator.minimum, operator.pool + 1)))
                for rate in rates[name]
                for _ in range(rounds)
            ]
            et = execution_times[name]
            table[name] = learn(
                {}, ((rate, k, reward(rate, et, k, operator.pool)) for rate, k in tries)
            )
        return cls(table)

    def save(self, path: Path) -> None:
        """Keep the table in a file."""
        path.write_text(json.dumps({"format": _FORMAT, "table": self.table}))

    @classmethod
    def load(cls, path: Path) -> RLearning:
        """Take the table from a file that `save` wrote."""
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
    """The experience after these tries of a degree at a rate, each with its reward."""
    after = {here: dict(tried) for here, tried in before.items()}
    for rate, degree, earned in tries:
        tried = after.setdefault(bucket(rate), {})
        count, mean = tried.get(degree, (0, 0.0))
        tried[degree] = count + 1, mean + (earned - mean) / (count + 1)
    return after


def _observed(
    context: Context, operator: Operator, et: float
) -> Iterable[tuple[float, int, float]]:
    """What the intervals so far tell about the degrees that ran in them."""
    for stats in context.past:
        of = stats.operators[operator.name]
        if of.active and of.received > 0:
            rate = of.received / stats.duration
            yield rate, of.active, reward(rate, et, of.active, operator.pool)
