"""BGElasor table 1, periodic load, in full size: six models and the yardsticks, in RMSE and MAE.

TRACE is the periodic load of the paper's public data set as a CSV file with the header `time,value`
and one row per 5 minutes. The task is the same for all: from any moment of the last 10 days,
forecast the next hour, 12 samples, having seen all samples before it. A model may learn from the
first 40 days and be tuned on the next 10, never on the rest.

`elastream experiment run bgelasor-1` has the same models at a smaller size, on all three loads.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.command import described
from elastream.experiments.bgelasor_1 import MEASURES, PUBLISHED
from elastream.experiments.forecasting.arima import CarriedArima
from elastream.experiments.forecasting.recurrent import Network
from elastream.experiments.forecasting.svr import SvrPerStep
from elastream.experiments.forecasting.task import Forecaster, Forecasts, Task
from elastream.experiments.work import Advance
from elastream.predictors.accuracy import mae, rmse
from elastream.predictors.base import Predictor
from elastream.predictors.basic import Basic
from elastream.predictors.yardsticks import forecasts_from, yardsticks
from elastream.workloads.traces import load_trace

DAY = 288
COLUMNS = [MEASURES.index(name) for name in ("periodic_rmse", "periodic_mae")]


@dataclass(frozen=True)
class Plain:
    """A forecast that needs no model: `basic`, which is the last hour once more, and others."""

    predictor: Predictor

    def steps(self, task: Task) -> int:
        """There is nothing to learn."""
        return 0

    def forecasts(self, task: Task, advance: Advance) -> Forecasts:
        """From all samples before each moment."""
        moments = task.test.tolist()
        return Forecasts(forecasts_from(self.predictor, task.series, moments, task.horizon))


def main() -> None:
    """Measure every model, two at a time, and print the table."""
    arguments = parsed()
    task = Task(load_trace(arguments.trace, fill_gaps=True).values / 1e6, 40 * DAY, 50 * DAY)
    print(f"{len(task.series)} samples, those that were missing put between their neighbours")
    print(f"task: the next {task.horizon} samples, from each moment of the test part\n")
    step, samples = 86_400 / DAY, len(task.series)
    models: dict[str, list[Forecaster]] = {
        "basic": [Plain(Basic())],
        **{of.name: [Plain(of)] for of in yardsticks(step, samples)},
        "arima": [CarriedArima()],
        "svr": [SvrPerStep()],
    }
    for name in ("lstm", "gru", "bilstm", "bigru"):
        models[name] = [Network(name, seed) for seed in range(arguments.seeds)]
    print(f"{'model':16}{'RMSE':>8}{'MAE':>8}{'step 1':>8}{'step 12':>8}{'s':>6}   published")
    started = perf_counter()
    # Each process has a core of its own.
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        pending = {
            name: [processes.submit(measured, model, task) for model in each]
            for name, each in models.items()
        }
        for name, each in pending.items():
            print_row(name, [job.result() for job in each])
    print(f"\n{(perf_counter() - started) / 60:.1f} minutes in all")
    print("measured in millions of events per 5 minutes; the unit of the published is unknown")


def measured(model: Forecaster, task: Task) -> tuple[list[float], str]:
    """RMSE and MAE over all steps, RMSE of the first and the last, seconds; what was chosen."""
    started = perf_counter()
    found = model.forecasts(task, lambda steps: None)
    forecasts, truth = np.maximum(found.values, 0.0), task.truth(task.test)
    steps = [rmse(truth[:, step], forecasts[:, step]) for step in (0, -1)]
    took = perf_counter() - started
    return [rmse(truth, forecasts), mae(truth, forecasts), *steps, took], found.choice


def print_row(name: str, measured: list[tuple[list[float], str]]) -> None:
    """One model: the mean over its seeds, the RMSE of each, and what was chosen."""
    *errors, took = np.mean([figures for figures, _ in measured], axis=0)
    figures = "".join(f"{value:8.3f}" for value in errors)
    published = " / ".join(f"{PUBLISHED[name][at]:.3f}" for at in COLUMNS if name in PUBLISHED)
    print(f"{name:16}{figures}{took:6.0f}   {published}", flush=True)
    for figures_of_one, choice in measured:
        if choice:
            print(f"{'':16}RMSE {figures_of_one[0]:.3f}: {choice}", flush=True)


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = described(__doc__)
    parser.add_argument("trace", type=Path, nargs="?", default=os.environ.get("BGELASOR_TRACE"))
    parser.add_argument("--seeds", type=int, default=1, help="average the networks over so many")
    arguments = parser.parse_args()
    if arguments.trace is None:
        parser.error("name the trace, or set BGELASOR_TRACE")
    return arguments


if __name__ == "__main__":
    main()
