"""BGElasor table 1: six models on three loads, in RMSE and MAE."""

from __future__ import annotations

from elastream.experiments.base import Experiment, Inputs, Row
from elastream.experiments.forecasting.arima import CarriedArima
from elastream.experiments.forecasting.loads import DAY, ByLoad
from elastream.experiments.forecasting.recurrent import Network
from elastream.experiments.forecasting.svr import SvrPerStep
from elastream.experiments.forecasting.task import Forecaster
from elastream.predictors.cards import require

LOADS = ("stable", "periodic", "fluctuating")
MEASURES = tuple(f"{load}_{error}" for load in LOADS for error in ("rmse", "mae"))
PUBLISHED = {
    "arima": (0.207, 0.156, 1.252, 0.888, 1.001, 0.713),
    "svr": (0.163, 0.127, 0.789, 0.589, 0.720, 0.504),
    "lstm": (0.141, 0.113, 0.541, 0.397, 0.639, 0.433),
    "gru": (0.124, 0.098, 0.531, 0.381, 0.637, 0.434),
    "bilstm": (0.119, 0.094, 0.529, 0.385, 0.624, 0.426),
    "bigru": (0.101, 0.081, 0.490, 0.341, 0.581, 0.401),
}
LABELS = {"bilstm": "BiLSTM", "bigru": "BiGRU"}
DAYS, EPOCHS = 24, 15
ORDERS = ((1, 1, 1), (4, 1, 3), (12, 0, 1))
SVR = SvrPerStep(lags=(36, 144), widths=(0.3,))
NOTES = f"""\
Measured in percent of the load's mean; the unit of the published figures is unknown, as are the \
paper's window and horizon: only the order of the models compares.
The task: from each moment of the test part forecast the next hour, 12 samples. The figures show \
the last of them.
To take minutes and not hours it is smaller than the paper's: the first {DAYS} days of each load \
(16 to learn from, 4 to tune on, 4 to test with) instead of 60, at most {EPOCHS} epochs, one seed \
instead of ten, and few choices to tune. benchmarks.bgelasor_table1 has the periodic load in full \
size.
The authors' data set, with the periodic and the fluctuating load, is public: give files with \
--trace periodic=FILE and --trace fluctuating=FILE.
The synthetic loads are smooth noise around a level, a daily swing or sudden jumps. Beyond an hour \
or a day there is nothing in them to learn, so that the networks lie close together, and what is \
left of the fluctuating load, its jumps, no model can foresee."""


def experiment() -> Experiment:
    """The models of section 4.2."""
    rows = tuple(_row(name) for name in PUBLISHED)
    title = "BGElasor table 1: six models on three loads"
    return Experiment("bgelasor-1", title, LOADS, MEASURES, rows, NOTES, trains=True)


def _forecaster(name: str, seed: int) -> Forecaster:
    """The model of that name, at a size that takes minutes."""
    if name == "arima":
        return CarriedArima(ORDERS)
    return SVR if name == "svr" else Network(name, seed, EPOCHS)


def _row(name: str) -> Row:
    def work(inputs: Inputs) -> ByLoad:
        require(name)
        loads = {load: inputs.trace(load).first(DAYS * DAY) for load in LOADS}
        return ByLoad(_forecaster(name, inputs.seed), loads)

    label = LABELS.get(name, name.upper())
    return Row(label, work, dict(zip(MEASURES, PUBLISHED[name], strict=True)))
