"""BGElasor table 1, periodic load: six models on one task, in RMSE and MAE.

    python benchmarks/bgelasor_table1.py TRACE.csv [--seeds 3]

TRACE is the periodic load of the paper's public data set as a CSV file with the header `time,value`
and one row per 5 minutes. The task is the same for all: from any moment of the last 10 days,
forecast the next hour, 12 samples, having seen all samples before it. A model may learn from the
first 40 days and be tuned on the next 10, never on the rest.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from elastream.predictors.accuracy import mae, rmse
from elastream.workloads.traces import load_trace

Values = NDArray[np.float64]

DAY = 288
HORIZON = 12
WINDOW = DAY // 2
TRAINED, VALIDATED = 40 * DAY, 50 * DAY
PUBLISHED = {
    "arima": (1.252, 0.888),
    "svr": (0.789, 0.589),
    "lstm": (0.541, 0.397),
    "gru": (0.531, 0.381),
    "bilstm": (0.529, 0.385),
    "bigru": (0.490, 0.341),
}
EPOCHS = 40
ARIMA_ORDERS = ((1, 1, 1), (2, 1, 2), (4, 1, 3), (6, 1, 1), (12, 1, 1), (12, 0, 1))
SVR_LAGS = (12, 36, 144, 288)
SVR_WIDTHS = (1.0, 0.3)
"""Multiples of scikit-learn's default γ, 1 / (lags · variance)."""


def main() -> None:
    """Measure every model, two at a time, and print the table."""
    arguments = parsed()
    series = load_trace(arguments.trace, fill_gaps=True).values / 1e6
    print(f"{len(series)} samples, those that were missing put between their neighbours")
    print(f"task: the next {HORIZON} samples, from each moment of the test part\n")
    origins = np.arange(VALIDATED, len(series) - HORIZON + 1)
    models: dict[str, list[Callable[[Values, NDArray[np.int_]], Values]]] = {
        "basic": [basic],
        "arima": [arima],
        "svr": [svr],
    }
    for name in ("lstm", "gru", "bilstm", "bigru"):
        models[name] = [partial(recurrent, name, seed) for seed in range(arguments.seeds)]
    print(f"{'model':8}{'RMSE':>8}{'MAE':>8}{'step 1':>8}{'step 12':>8}{'s':>6}   published")
    started = perf_counter()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        pending = {
            name: [processes.submit(measured, model, series, origins) for model in each]
            for name, each in models.items()
        }
        for name, each in pending.items():
            print_row(name, [job.result() for job in each])
    print(f"\n{(perf_counter() - started) / 60:.1f} minutes in all")
    print("measured in millions of events per 5 minutes; the unit of the published is unknown")


def measured(
    model: Callable[[Values, NDArray[np.int_]], Values], series: Values, origins: NDArray[np.int_]
) -> list[float]:
    """RMSE and MAE over all steps, RMSE of the first and the last step, and seconds."""
    started = perf_counter()
    forecasts = np.maximum(model(series, origins), 0.0)
    truth = sliding_window_view(series, HORIZON)[origins]
    steps = [rmse(truth[:, step], forecasts[:, step]) for step in (0, -1)]
    took = perf_counter() - started
    return [rmse(truth, forecasts), mae(truth, forecasts), *steps, took]


def print_row(name: str, measured: list[list[float]]) -> None:
    """One model: the mean over its seeds, and the RMSE of each."""
    *errors, took = np.mean(measured, axis=0)
    figures = "".join(f"{value:8.3f}" for value in errors)
    published = " / ".join(f"{value:.3f}" for value in PUBLISHED.get(name, ()))
    print(f"{name:8}{figures}{took:6.0f}   {published}", flush=True)
    if len(measured) > 1:
        print(f"{'':8}RMSE of each seed: {', '.join(f'{each[0]:.3f}' for each in measured)}")


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="BGElasor table 1, periodic load.")
    parser.add_argument("trace", type=Path, nargs="?", default=os.environ.get("BGELASOR_TRACE"))
    parser.add_argument("--seeds", type=int, default=1, help="average the networks over so many")
    arguments = parser.parse_args()
    if arguments.trace is None:
        parser.error("name the trace, or set BGELASOR_TRACE")
    return arguments


def basic(series: Values, origins: NDArray[np.int_]) -> Values:
    """The last hour once more."""
    return sliding_window_view(series, HORIZON)[origins - HORIZON]


def arima(series: Values, origins: NDArray[np.int_]) -> Values:
    """ARIMA fitted to the training part, its state carried on through all samples.

    The order is the one with the least RMSE on the validation part. A daily season of 288 samples
    is out of reach of a seasonal ARIMA: its state would be that large.
    """
    tuning = np.arange(TRAINED, VALIDATED - HORIZON + 1)
    truth = sliding_window_view(series, HORIZON)[tuning]
    forecasts = {order: arima_of(order, series) for order in ARIMA_ORDERS}
    best = min(forecasts, key=lambda order: rmse(truth, forecasts[order][tuning]))
    print(f"        arima: order {best}, chosen on the validation part", flush=True)
    return forecasts[best][origins]


def arima_of(order: tuple[int, int, int], series: Values) -> Values:
    """The forecasts of ARIMA before each sample: Z Tʲ a_t, with a_t its state given the past."""
    from statsmodels.tsa.arima.model import ARIMA

    with warnings.catch_warnings():
        # Start values that are not stationary are only where the search begins.
        warnings.simplefilter("ignore")
        fitted = ARIMA(series[:TRAINED], order=order).fit(cov_type="none")
    carried = fitted.apply(series)
    space = carried.model.ssm
    state = carried.filter_results.predicted_state[:, :-1]
    steps = []
    for _ in range(HORIZON):
        steps.append(space["design"][0] @ state)
        state = space["transition"] @ state
    return np.stack(steps, axis=1)


def svr(series: Values, origins: NDArray[np.int_]) -> Values:
    """Support vector regression on the last samples, min-max scaled: one machine for each step.

    Lags and γ have the least RMSE on the validation part, after training on every fourth window.
    """
    scaled = series / series[:TRAINED].max()
    tuning = np.arange(TRAINED, VALIDATED - HORIZON + 1)

    def validation_error(choice: tuple[int, float]) -> float:
        ends = (step_by_svr(scaled, tuning, *choice, 4, step) for step in (0, HORIZON - 1))
        truth = sliding_window_view(scaled, HORIZON)[tuning][:, [0, -1]]
        return rmse(truth, np.stack(list(ends), axis=1))

    lags, width = min(product(SVR_LAGS, SVR_WIDTHS), key=validation_error)
    print(
        f"        svr: {lags} lags, γ {width} of its default, chosen on the validation part",
        flush=True,
    )
    steps = [step_by_svr(scaled, origins, lags, width, 1, step) for step in range(HORIZON)]
    return np.stack(steps, axis=1) * series[:TRAINED].max()


def step_by_svr(
    scaled: Values, origins: NDArray[np.int_], lags: int, width: float, every: int, step: int
) -> Values:
    """The forecasts for one step, by a machine that learned from `every` so many windows."""
    from sklearn.svm import SVR

    windows = sliding_window_view(scaled, lags)
    learned = np.arange(lags, TRAINED - HORIZON + 1, every)
    examples = windows[learned - lags]
    gamma = width / (lags * examples.var())
    machine = SVR(C=1.0, epsilon=0.02, gamma=gamma).fit(examples, scaled[learned + step])
    return np.asarray(machine.predict(windows[origins - lags]))


def recurrent(name: str, seed: int, series: Values, origins: NDArray[np.int_]) -> Values:
    """One of the networks: the last half day in, the next hour out."""
    # Another process has the other core.
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    from elastream.predictors.recurrent.architecture import Architecture
    from elastream.predictors.recurrent.measuring import forecasts_after
    from elastream.predictors.recurrent.model import Origin
    from elastream.predictors.recurrent.network import network_with
    from elastream.predictors.recurrent.split import Split
    from elastream.predictors.recurrent.training import train

    architecture = Architecture(name, window=WINDOW, horizon=HORIZON)
    split = Split(TRAINED / len(series), (VALIDATED - TRAINED) / len(series))
    origin = Origin("periodic", 86_400 / DAY)
    model = train(series, architecture, origin, split=split, epochs=EPOCHS, seed=seed)
    network = network_with(architecture, model.weights)
    windows = sliding_window_view(series, WINDOW)[origins - WINDOW]
    return forecasts_after(network, model.range, windows)


if __name__ == "__main__":
    main()
