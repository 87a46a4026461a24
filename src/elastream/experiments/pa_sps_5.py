"""PA-SPS table 5: an application that branches."""

from __future__ import annotations

from elastream.experiments.base import Experiment
from elastream.experiments.pa_sps_setup import SPEED, SYSTEM_MEASURES, fixed_row, pa_sps_row
from elastream.workloads.applications import twitter_complex

NOTES = """\
The execution times of its eight operators were not published: 0.8 ms each lets five replicas \
carry the peak, as r_over = 40 says.
Of the processors in use, the simulator counts the time for events only, of the paper's 56 cores. \
It is the same in both rows; the paper's difference is what a thread costs that waits: 2.85 cores \
for 27.5 replicas less are about a tenth of a core for every active replica. On Spark operators \
wait in place of computing, so this column says nothing there."""


def experiment() -> Experiment:
    """The systems of the table."""
    rows = (
        pa_sps_row(twitter_complex, "spiky", (0.688, 0.031, 1.000, 209.270, 9.57)),
        fixed_row(twitter_complex, "spiky", 5, (0.000, 0.000, 1.000, 31.990, 14.66)),
    )
    title = "PA-SPS table 5: a complex application"
    measures = (*SYSTEM_MEASURES, "cpu_percent")
    return Experiment("pa-sps-5", title, ("spiky",), measures, rows, NOTES, spark_speed=SPEED)
