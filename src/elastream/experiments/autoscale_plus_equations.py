"""What the equations of AUTOSCALE+ do: DABS-Storm figures 12 to 17 again, each time without one."""

from __future__ import annotations

from elastream.experiments.base import Experiment, Row
from elastream.experiments.dabs_storm import CORES, FIGURES, MEASURES, SPEED, in_figure
from elastream.policies.autoscale_plus import AutoscalePlus

RUNS = 2
VARIANTS = {
    "as published": AutoscalePlus(),
    "no regression (equation 3)": AutoscalePlus(regress=False),
    "combine = min (equation 5)": AutoscalePlus(combine="min"),
    "no working interval (equation 11 with β = 1)": AutoscalePlus(beta=1.0),
    "a wide one (β = 0.3)": AutoscalePlus(beta=0.3),
    "no weight (equations 12 and 13 with λ = 1)": AutoscalePlus(weight=1.0),
}
NOTES = """\
Nothing of this was published. λ weighs both what a replica may use of its core (equation 7) and \
what it is counted on for (equation 13): with 0.3, a change brings about 3.3 times as many \
replicas as the ideal degree. That many are idle most of the time, so that the ideal degree falls \
below β·k and the next change takes them away again. 'A core each' takes the sharing of cores out \
of equation 7, and in the simulator out of the execution times."""


def figure_12() -> Experiment:
    """Simple insensitive, progressive."""
    return _equations(12)


def figure_13() -> Experiment:
    """Simple insensitive, erratic."""
    return _equations(13)


def figure_14() -> Experiment:
    """Simple sensitive, progressive."""
    return _equations(14)


def figure_15() -> Experiment:
    """Simple sensitive, erratic."""
    return _equations(15)


def figure_16() -> Experiment:
    """Complex sensitive, progressive."""
    return _equations(16)


def figure_17() -> Experiment:
    """Complex sensitive, erratic."""
    return _equations(17)


def _equations(number: int) -> Experiment:
    rows = [_row(number, label, policy, CORES) for label, policy in VARIANTS.items()]
    rows.append(_row(number, "a core each (equations 7 to 9)", AutoscalePlus(), None))
    return Experiment(
        f"autoscale-plus-{number}",
        f"AUTOSCALE+, equation by equation: DABS-Storm figure {number}",
        (FIGURES[number][1],),
        MEASURES,
        tuple(rows),
        NOTES,
        runs=RUNS,
        spark_speed=SPEED,
    )


def _row(number: int, label: str, policy: AutoscalePlus, cores: int | None) -> Row:
    application, trace = FIGURES[number]
    return Row(label, in_figure(application, trace, policy, cores=cores, runs=RUNS))
