"""PA-SPS table 8: the predictive models, on system logs."""

from __future__ import annotations

from elastream.experiments.base import Experiment
from elastream.experiments.pa_sps_setup import (
    PREDICTOR_MEASURES,
    SPEED,
    STORM_OVERHEAD,
    predictor_rows,
)
from elastream.workloads.applications import logs

NOTES = f"""\
{STORM_OVERHEAD}
The trace is in the authors' public application repository: give it with --trace logs=FILE. The \
execution time was not published; that of the Twitter application is a guess."""


def experiment() -> Experiment:
    """The five models of section 3.2."""
    rows = predictor_rows(
        logs,
        "logs",
        {
            "ann": (0.603, 0.236, 0.987, 905.29, 0.355, 0.537),
            "fft": (0.503, 0.572, 1.0, 9184.06, 0.746, 1.191),
            "lr": (0.565, 0.252, 0.994, 1021.8, 0.412, 0.413),
            "rf": (0.661, 0.335, 0.998, 1673.56, 0.243, 0.394),
            "basic": (0.655, 0.306, 0.989, 855.97, 0.25, 0.449),
        },
    )
    title = "PA-SPS table 8 and figure 15: five predictive models on system logs"
    return Experiment(
        "pa-sps-8", title, ("logs",), PREDICTOR_MEASURES, rows, NOTES, spark_speed=SPEED
    )
