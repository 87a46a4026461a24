"""PA-SPS table 6: the predictive models, on the raw Twitter trace."""

from __future__ import annotations

from elastream.experiments.base import Experiment
from elastream.experiments.pa_sps_setup import (
    PREDICTOR_MEASURES,
    SPEED,
    STORM_OVERHEAD,
    predictor_rows,
)
from elastream.workloads.applications import twitter

NOTES = f"""\
{STORM_OVERHEAD}
The trace is in the authors' public application repository: give it with --trace raw=FILE. The \
shipped one is the spiky trace with noise: only the kind of difficulty is the same."""


def experiment() -> Experiment:
    """The five models of section 3.2."""
    rows = predictor_rows(
        twitter,
        "raw",
        {
            "ann": (0.395, 0.213, 1.0, 1044.51, 0.424, 0.466),
            "fft": (0.153, 0.579, 1.0, 12285.99, 0.903, 1.282),
            "lr": (0.421, 0.261, 0.988, 1366.68, 0.397, 0.391),
            "rf": (0.539, 0.381, 0.987, 2610.33, 0.253, 0.398),
            "basic": (0.513, 0.251, 1.0, 1049.49, 0.312, 0.407),
        },
    )
    title = "PA-SPS table 6: five predictive models on a raw input"
    return Experiment(
        "pa-sps-6", title, ("raw",), PREDICTOR_MEASURES, rows, NOTES, spark_speed=SPEED
    )
