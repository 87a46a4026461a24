"""How long one decision of a loaded recurrent model takes: 100 samples in, 6 out; at most 10 ms.

Run it with `python -m benchmarks.recurrent_decision`.
"""

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from elastream.predictors import PREDICTORS
from elastream.predictors.recurrent.architecture import CELLS, Architecture
from elastream.predictors.recurrent.model import Origin
from elastream.predictors.recurrent.model_file import save
from elastream.predictors.recurrent.training import train

SAMPLES, HORIZON, DECISIONS, TARGET_MS = 100, 6, 200, 10


def main() -> None:
    """Print the first, the median and the slowest time of each model."""
    rate = 1_000 + 300 * np.sin(np.arange(800) / 8)
    print(f"{'model':<8}{'load ms':>9}{'first ms':>10}{'median ms':>11}{'slowest ms':>12}")
    with TemporaryDirectory() as folder:
        for name in CELLS:
            path = Path(folder) / name
            save(train(rate, Architecture(name), Origin("sine", 5.0), epochs=1), path)
            started = perf_counter()
            predictor = PREDICTORS[name](path=path)
            loaded = 1_000 * (perf_counter() - started)
            took = []
            for begin in range(DECISIONS + 1):
                started = perf_counter()
                predictor.predict(rate[begin : begin + SAMPLES], HORIZON)
                took.append(1_000 * (perf_counter() - started))
            first, *others = took
            verdict = "" if median(others) <= TARGET_MS else "  too slow"
            figures = f"{loaded:>9.0f}{first:>10.2f}{median(others):>11.3f}{max(others):>12.2f}"
            print(f"{name:<8}{figures}{verdict}")


if __name__ == "__main__":
    main()
