"""`auto`: a family of cheap models side by side, weighted by how well each has been doing."""

from __future__ import annotations

import numpy as np

from elastream.predictors.base import Forecast, Predictor, Samples
from elastream.predictors.family import LONGEST_SEASON, STEPS, family

ORIGINS = 600
"""From how many samples back each member is judged."""
WORST = 20
"""A loss counts as no more than this many times the mean loss of the best member."""
SHARPNESS = 4
"""How much faster weights move than the bound is tightest for: the best of these members often
differ by a few per cent only."""


class Auto(Predictor):
    """The exponentially weighted average of its family, with its own weights for every step ahead.

    A member whose losses over the last T origins add up to L_i gets a weight in proportion to
    exp(-η·L_i); a loss is an absolute error in units of the worst that counts, so it is in [0, 1].
    The members' weighted average loss is no more than (η·L* + ln N) / (1 - e^-η), where N is how
    many they are, and L* is the loss of the best of them. The forecast, their weighted average,
    loses no more than that, as absolute errors are convex; it may where errors are cut off at the
    worst that counts. The bound is tightest near η = ln(1 + √(2·ln N / L*)), and then it is
    L* + √(2·L*·ln N) + ln N (Cesa-Bianchi and Lugosi, Prediction, Learning, and Games, 2006,
    section 2.4). T is a sliding window: the bound is about the best of the recent past.

    `Forecast.trusts` has the weights for the next sample.

    >>> ramp = Auto().predict(np.arange(100.0), horizon=3)
    >>> ramp.values.round()
    array([100., 101., 102.])
    """

    name = "auto"
    wants = 3 * LONGEST_SEASON

    def _extrapolate(self, history: Samples, horizon: int) -> Forecast:
        recent = history[-self.wants :]
        steps = min(horizon, STEPS)
        origins = min(ORIGINS + steps, len(recent))
        members = family(recent, origins, steps)
        made = np.maximum(np.stack(list(members.values())), 0.0)
        weights = _weights(made, recent[-origins:])
        values = np.einsum("ms,ms->s", weights, made[:, -1])
        if horizon > steps:
            ahead = np.maximum([of[-1] for of in family(recent, 1, horizon).values()], 0.0)
            values = np.concatenate([values, weights[:, -1] @ ahead[:, steps:]])
        trusts = dict(zip(members, weights[:, 0].tolist(), strict=True))
        return Forecast(values, self.name, trusts=trusts)


def _weights(made: Samples, samples: Samples) -> Samples:
    """How much each member counts in each step: (members, steps); all alike before any loss."""
    count, origins, steps = made.shape
    weights = np.full((count, steps), 1 / count)
    for step in range(min(steps, origins - 1)):
        truth = samples[step + 1 :]
        losses = np.abs(made[:, : len(truth), step] - truth)[:, -ORIGINS:]
        largest = WORST * losses.mean(axis=1).min() or losses.max()
        if largest > 0:
            total = np.minimum(losses / largest, 1.0).sum(axis=1)
            least = total.min()
            eta = SHARPNESS * np.log1p(np.sqrt(2 * np.log(count) / max(least, 1e-9)))
            weights[:, step] = np.exp(-eta * (total - least))
            weights[:, step] /= weights[:, step].sum()
    return weights
