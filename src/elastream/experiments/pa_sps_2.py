"""PA-SPS table 2: the predictive models, on the composed Twitter trace."""

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
The error of the replicas is taken against what each operator had to process, queue and all, and \
within its pool; the paper does not say how it counts what it calls needed."""


def experiment() -> Experiment:
    """The five models of section 3.2."""
    rows = predictor_rows(
        twitter,
        "spiky",
        {
            "ann": (0.475, 0.07, 1.0, 355.49, 0.212, 0.277),
            "fft": (0.519, 0.189, 1.0, 1023.38, 0.249, 0.345),
            "lr": (0.533, 0.195, 1.0, 663.03, 0.09, 0.14),
            "rf": (0.538, 0.227, 0.996, 583.921, 0.14, 0.193),
            "basic": (0.56, 0.325, 1.0, 1295.49, 0.18, 0.287),
        },
    )
    title = "PA-SPS table 2 and figure 9: five predictive models"
    return Experiment(
        "pa-sps-2", title, ("spiky",), PREDICTOR_MEASURES, rows, NOTES, spark_speed=SPEED
    )
