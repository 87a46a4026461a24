"""PA-SPS table 4: PA-SPS and the two systems that it was compared with."""

from __future__ import annotations

from elastream.experiments.base import Experiment
from elastream.experiments.pa_sps_setup import (
    SPEED,
    STORM_OVERHEAD,
    SYSTEM_MEASURES,
    dabs_row,
    pa_sps_row,
    presps_row,
)
from elastream.workloads.applications import twitter

NOTES = f"""\
{STORM_OVERHEAD}
DABS-Storm loses what is queued, and what comes in while it restarts. How long a restart took was \
not published; five seconds are a guess, and its latency is low here because what would have been \
late is lost."""


def experiment() -> Experiment:
    """The systems of the table."""
    rows = (
        pa_sps_row(twitter, "spiky", (0.475, 0.071, 1.000, 355.490)),
        presps_row("PSPS", twitter, "spiky", (0.561, 0.183, 0.998, 2098.910)),
        dabs_row(twitter, "spiky", (0.396, 0.284, 0.828, 1391.280)),
    )
    title = "PA-SPS table 4 and figure 10: PSPS and DABS-Storm"
    return Experiment(
        "pa-sps-4", title, ("spiky",), SYSTEM_MEASURES, rows, NOTES, spark_speed=SPEED
    )
