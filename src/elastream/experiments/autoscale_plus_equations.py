"""What the equations of AUTOSCALE+ do: DABS-Storm figure 16 again, each time without one."""

from __future__ import annotations

from elastream.experiments.base import Experiment, Row
from elastream.experiments.dabs_storm import CORES, MEASURES, SPEED, in_figure
from elastream.policies.autoscale_plus import AutoscalePlus
from elastream.workloads.sensitive import complex_sensitive

RUNS = 2
VARIANTS = {
    "as published": AutoscalePlus(),
    "no weight (equation 13 with λ = 1)": AutoscalePlus(weight=1.0),
    "no working interval (equation 11 with β = 1)": AutoscalePlus(beta=1.0),
    "a wide one (β = 0.3)": AutoscalePlus(beta=0.3),
    "combine = min (equation 5)": AutoscalePlus(combine="min"),
}
NOTES = """\
Nothing of this was published. λ weighs both what a replica may use of its core (equation 7) and \
what it is counted on for (equation 13): with 0.3, a change brings about 3.3 times as many \
replicas as the ideal degree. That many are idle most of the time, so that the ideal degree falls \
below β·k and the next change takes them away again. 'A core each' takes the sharing of cores out \
of equation 7."""


def experiment() -> Experiment:
    """The complex topology on the progressive stream."""
    rows = [_row(label, policy, CORES) for label, policy in VARIANTS.items()]
    rows.append(_row("a core each (equations 7 to 9)", AutoscalePlus(), None))
    title = "AUTOSCALE+, equation by equation: DABS-Storm figure 16"
    return Experiment(
        "autoscale-plus",
        title,
        ("progressive",),
        MEASURES,
        tuple(rows),
        NOTES,
        runs=RUNS,
        spark_speed=SPEED,
    )


def _row(label: str, policy: AutoscalePlus, cores: int | None) -> Row:
    return Row(
        label,
        in_figure(complex_sensitive, "progressive", policy, cores=cores, runs=RUNS),
        simulator_only=cores is None,
    )
