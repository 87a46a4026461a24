"""PRESPS table 3: PRESPS and DABS-Storm."""

from __future__ import annotations

from elastream.experiments.base import Experiment
from elastream.experiments.pa_sps_setup import SPEED, SYSTEM_MEASURES, dabs_row, presps_row
from elastream.workloads.applications import twitter

NOTES = """\
The paper's trace is another one, of tweets about an election, which we have not found. PA-SPS \
table 4 repeats these figures next to its own, on its own trace. How long a restart of DABS-Storm \
took was not published; five seconds are a guess."""


def experiment() -> Experiment:
    """The systems of the table."""
    rows = (
        presps_row("PRESPS", twitter, "spiky", (0.5617, 0.1831, 0.9987, 2098.91)),
        dabs_row(twitter, "spiky", (0.3962, 0.2849, 0.8283, 1391.28)),
    )
    title = "PRESPS table 3: PRESPS and DABS-Storm"
    return Experiment(
        "presps-3", title, ("spiky",), SYSTEM_MEASURES, rows, NOTES, spark_speed=SPEED
    )
