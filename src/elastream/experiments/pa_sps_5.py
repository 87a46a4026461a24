"""PA-SPS table 5: an application that branches."""

from __future__ import annotations

from elastream.experiments.base import Experiment
from elastream.experiments.pa_sps_setup import SYSTEM_MEASURES, fixed_row, pa_sps_row
from elastream.workloads.applications import twitter_complex

NOTES = """\
The execution times of its eight operators were not published: 0.8 ms each lets five replicas \
carry the peak, as r_over = 40 says."""


def experiment() -> Experiment:
    """The systems of the table."""
    rows = (
        pa_sps_row(twitter_complex, "spiky", (0.688, 0.031, 1.000, 209.270)),
        fixed_row(twitter_complex, "spiky", 5, (0.000, 0.000, 1.000, 31.990)),
    )
    title = "PA-SPS table 5: a complex application"
    return Experiment("pa-sps-5", title, ("spiky",), SYSTEM_MEASURES, rows, NOTES)
