"""How long one decision takes: 100 samples in, 6 out, every model beside `basic`.

A model that can make use of more samples gets them.

Run it with `python -m benchmarks.predictors`. The recurrent models are not here: they are loaded
from a file that training writes.
"""

from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from elastream.predictors import PREDICTORS, Predictor

TARGET_MS = {
    "auto": 20,
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
LONGEST = 8_192
"""More samples than any model wants."""


def main() -> bool:
    """Print the median time of a decision of every model."""
    rng = np.random.default_rng(7)
    ticks = np.arange(LONGEST + DECISIONS)
    rate = 1_000 + 300 * np.sin(ticks / 8) + rng.normal(0, 30, len(ticks))
    took = {}
    for name in TARGET_MS:
        predictor = PREDICTORS[name]()
        seen = max(SAMPLES, predictor.wants)
        histories = [rate[end - seen : end] for end in range(LONGEST, LONGEST + DECISIONS)]
        took[name] = median_ms(predictor, histories)
    figures = [
        Figure(
            f"{name} ({ms / took['basic']:,.0f} x basic)",
            f"{ms:.2f} ms",
            f"{TARGET_MS[name]} ms",
            ms <= TARGET_MS[name],
        )
        for name, ms in took.items()
    ]
    return report(f"Predictors: one decision, {SAMPLES} samples in, {HORIZON} out", figures)


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
    by_hand(main)
