"""How long one decision of a loaded recurrent model takes: 100 samples in, 6 out; at most 10 ms.

Run it with `python -m benchmarks.recurrent_decision`.
"""

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from elastream.predictors import PREDICTORS
from elastream.predictors.recurrent.architecture import CELLS, Architecture
from elastream.predictors.recurrent.model import Origin
from elastream.predictors.recurrent.model_file import save
from elastream.predictors.recurrent.training import train

SAMPLES, HORIZON, DECISIONS, TARGET_MS = 100, 6, 200, 10


def main() -> bool:
    """Print the median and the slowest time of each model, and how long it takes to load."""
    rate = 1_000 + 300 * np.sin(np.arange(800) / 8)
    with TemporaryDirectory() as folder:
        figures = [figure_of(name, rate, Path(folder) / name) for name in CELLS]
    return report(f"Recurrent predictors: {SAMPLES} samples in, {HORIZON} out", figures)


def figure_of(name: str, rate: np.ndarray, path: Path) -> Figure:
    """One model: trained a little, saved, loaded, and asked again and again."""
    save(train(rate, Architecture(name), Origin("sine", 5.0), epochs=1), path)
    started = perf_counter()
    predictor = PREDICTORS[name](path=path)
    loaded = perf_counter() - started
    took = []
    for begin in range(DECISIONS + 1):
        started = perf_counter()
        predictor.predict(rate[begin : begin + SAMPLES], HORIZON)
        took.append(1_000 * (perf_counter() - started))
    _, *others = took
    measured = f"{median(others):.2f} ms, at most {max(others):.1f}"
    what = f"{name} (loaded in {loaded:.1f} s)"
    return Figure(what, measured, f"{TARGET_MS} ms", median(others) <= TARGET_MS)


if __name__ == "__main__":
    by_hand(main)
