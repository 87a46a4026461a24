"""How long one decision takes: 100 samples in, 6 out, every model beside `basic`.

Run it with `python -m benchmarks.predictors`. The recurrent models are not here: they are loaded
from a file that training writes.
"""

from statistics import median
from time import perf_counter

import numpy as np

from elastream.predictors import PREDICTORS, Predictor

TARGET_MS = {
    "basic": 5,
    "lr": 5,
    "fft": 5,
    "regression": 5,
    "ann": 150,
    "svr": 150,
    "arima": 150,
    "rf": 250,
}
SAMPLES, HORIZON, DECISIONS = 100, 6, 20


def main() -> None:
    """Print the median time of a decision of every model."""
    rng = np.random.default_rng(7)
    ticks = np.arange(SAMPLES + DECISIONS)
    rate = 1_000 + 300 * np.sin(ticks / 8) + rng.normal(0, 30, len(ticks))
    histories = [rate[start : start + SAMPLES] for start in range(DECISIONS)]
    basic = median_ms(PREDICTORS["basic"](), histories)
    print(f"{'model':<12}{'median ms':>11}{'x basic':>11}{'target ms':>11}")
    for name, target in TARGET_MS.items():
        took = median_ms(PREDICTORS[name](), histories)
        verdict = "" if took <= target else "  too slow"
        print(f"{name:<12}{took:>11.3f}{took / basic:>11,.0f}{target:>11}{verdict}")


def median_ms(predictor: Predictor, histories: list[np.ndarray]) -> float:
    """Milliseconds of one decision, after a first one that imports what it needs."""
    predictor.predict(histories[0], HORIZON)
    took = []
    for history in histories:
        started = perf_counter()
        predictor.predict(history, HORIZON)
        took.append(1_000 * (perf_counter() - started))
    return median(took)


if __name__ == "__main__":
    main()
