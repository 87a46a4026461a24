"""Are the bands honest, and is `auto` as good as the best of its family? On every trace.

Up to 1,300 forecasts of 6 samples each, one from every sample on: how much of the truth the 90 %
band of `auto` holds, one and six samples ahead; and its mean absolute error beside that of every
member of its family, over the forecasts that both made, after the first 300 of them: the seasonal
ones are there only where a season has been found. It must also beat `basic`, the last value,
wherever a member of its family does. Where quantiles coincide with the truth, as they do on an
input that is foreseen exactly, it counts by `shares_below`: a band of no width that is always right
is a 90 % band, too.
`python -m benchmarks.forecasts [--trace NAME=FILE ...] [--only NAME ...]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.command import described
from benchmarks.measure import Figure, report
from elastream.predictors.auto import Auto
from elastream.predictors.base import repeat_last
from elastream.predictors.family import family
from elastream.predictors.quantiles import ErrorBands, shares_below
from elastream.workloads import TRACES
from elastream.workloads.traces import load_trace

Floats = NDArray[np.float64]
FIRST, FORECASTS, LEARNING, HORIZON = 100, 1_300, 300, 6
STEPS = (1, HORIZON)
ENOUGH = 1_000
"""Over fewer forecasts, a band may be two standard errors off."""
LOW, HIGH, LEVEL, APART = 0.05, 0.95, 0.9, 0.03
COMPARED = 30
"""Members that made fewer forecasts than this after the first are not compared."""
WORSE = 1.05
EXACT = 1e-6
"""An error of less than this part of the input is rounding, and cannot be compared with another."""
FORESEEN = 0.98
"""Something can be foreseen where a member has less than this part of the error of `basic`."""


@dataclass
class Followed:
    """What came of the forecasts of a trace, for one number of steps ahead."""

    held: list[float] = field(default_factory=list)
    errors: dict[str, dict[int, float]] = field(default_factory=dict)
    """Absolute, by who made the forecast, and from where."""

    @property
    def coverage(self) -> float:
        """How much of the truth was in the band."""
        return float(np.mean(self.held)) if self.held else math.nan

    def beside(self, name: str, other: str) -> tuple[float, float]:
        """The mean errors of two over what both forecast, after the first forecasts."""
        mine, others = self.errors[name], self.errors[other]
        both = sorted(mine.keys() & others.keys())[LEARNING:]
        return float(np.mean([mine[at] for at in both])), float(
            np.mean([others[at] for at in both])
        )

    def members(self) -> list[str]:
        """Those of the family that were there for long enough to be compared."""
        known = {name for name, errors in self.errors.items() if len(errors) >= LEARNING + COMPARED}
        return sorted(known - {"auto", "basic"})

    def foreseen(self) -> bool:
        """Whether a member does better than `basic`, where both were there."""
        pairs = [self.beside(each, "basic") for each in self.members()]
        return any(theirs < FORESEEN * basic for theirs, basic in pairs)


def followed(samples: Floats) -> dict[int, Followed]:
    """Forecast from one sample after the other."""
    auto, bands = Auto(), ErrorBands()
    found = {step: Followed() for step in STEPS}
    for end in range(FIRST, min(len(samples) - HORIZON, FIRST + FORECASTS)):
        history = samples[max(end - auto.wants, 0) : end]
        bands.settle(float(samples[end - 1]))
        made = bands.around(auto.predict(history, HORIZON))
        others = {name: of[-1] for name, of in family(history, 1, HORIZON).items()}
        others |= {"auto": made.values, "basic": repeat_last(history, HORIZON)}
        for step, of in found.items():
            truth = float(samples[end + step - 1])
            for name, values in others.items():
                error = abs(max(values[step - 1], 0.0) - truth)
                of.errors.setdefault(name, {})[end] = error
            if made.quantiles:
                quantiles = np.array([values[step - 1] for values in made.quantiles.values()])
                below = shares_below(truth, quantiles, np.array(list(made.quantiles)))
                shares = dict(zip(made.quantiles, below.tolist(), strict=True))
                of.held.append(shares[HIGH] - shares[LOW])
    return found


def regret(ours: float, theirs: float, exact: float) -> float:
    """How many times as large our error is; 1 where it is rounding."""
    if ours <= exact:
        return 1.0
    return ours / theirs if theirs > 0 else math.inf


def judged(name: str, samples: Floats) -> list[Figure]:
    """Of one trace: one figure for every number of steps ahead."""
    figures = []
    exact = EXACT * float(samples.mean())
    for step, of in followed(samples).items():
        regrets = {each: regret(*of.beside("auto", each), exact) for each in of.members()}
        worst = max(regrets, key=lambda each: regrets[each])
        ours, basic = of.beside("auto", "basic")
        apart = APART
        if len(of.held) < ENOUGH:
            apart = max(APART, 2 * math.sqrt(LEVEL * (1 - LEVEL) / max(len(of.held), 1)))
        foreseen = of.foreseen()
        figures.append(
            Figure(
                f"{name}, {step} ahead",
                f"held {of.coverage:.1%}, error {regrets[worst]:.3f} of {worst}'s, "
                f"{ours / (basic or 1):.3f} of basic's",
                f"{LEVEL:.0%} ± {apart:.1%}, {WORSE}, "
                + ("below 1" if foreseen else "nothing to foresee"),
                abs(of.coverage - LEVEL) <= apart
                and regrets[worst] <= WORSE
                and (ours < basic or not foreseen),
            )
        )
    return figures


def main(arguments: Sequence[str] | None = ()) -> bool:
    """Print the table."""
    parser = described(__doc__)
    parser.add_argument("--trace", action="append", default=[], help="NAME=FILE")
    parser.add_argument("--only", action="append", default=[], help="traces whose names begin so")
    asked = parser.parse_args(arguments)
    named = {name: TRACES[name]() for name in TRACES}
    for option in asked.trace:
        name, _, file = option.partition("=")
        named[name] = load_trace(Path(file), fill_gaps=True)
    figures = []
    for name, trace in named.items():
        if not asked.only or name.startswith(tuple(asked.only)):
            figures += judged(name, trace.values)
    return report("Forecasts: the 90 % band of auto, and auto beside its family", figures)


if __name__ == "__main__":
    raise SystemExit(not main(None))
