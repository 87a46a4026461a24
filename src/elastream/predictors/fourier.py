"""`fft`: a polynomial trend, and the strongest frequencies of what is left (PA-SPS).

1. Fit a polynomial of degree 3 to the samples x_0 … x_{n-1}, and take it away.
2. Transform the rest, keep the 10 coefficients of the largest amplitude, and transform back: that
   is one period of n samples.
3. The forecast for n + k is the trend at n + k plus the period at k.

Both numbers are the defaults of the Darts library, whose model PA-SPS uses. The two coefficients
of a wave, at frequencies f and n - f, count as two, as they do there.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Polynomial

from elastream.errors import InvalidInputError
from elastream.predictors.base import Predictor, Samples

SAMPLES_PER_DEGREE = 4


class Fft(Predictor):
    """Trend plus the strongest frequencies.

    A history of fewer than four samples per degree gets a trend of a lower degree: a cubic through
    four samples fits them all and explodes after them. The 12 samples of PA-SPS get the cubic.

    >>> Fft(degree=0).predict([5, 9, 5, 1, 5, 9, 5, 1], horizon=4).values.round(6)
    array([5., 9., 5., 1.])
    """

    name = "fft"

    def __init__(self, *, frequencies: int = 10, degree: int = 3) -> None:
        if frequencies < 1:
            raise InvalidInputError(f"fft: frequencies must be at least 1, not {frequencies}")
        if degree < 0:
            raise InvalidInputError(f"fft: degree must be at least 0, not {degree}")
        self.frequencies = frequencies
        self.degree = degree

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        count = len(history)
        index = np.arange(count + horizon)
        degree = min(self.degree, count // SAMPLES_PER_DEGREE)
        trend = Polynomial.fit(index[:count], history, degree)(index)
        period = strongest_waves(history - trend[:count], self.frequencies)
        return trend[count:] + np.resize(period, horizon)


def strongest_waves(samples: Samples, frequencies: int) -> Samples:
    """The samples, rebuilt from their `frequencies` largest Fourier coefficients.

    >>> strongest_waves(np.array([4.0, 0.0, -4.0, 0.0]), 2)
    array([ 4.,  0., -4.,  0.])
    """
    spectrum = np.fft.fft(samples)
    # A stable sort decides ties by frequency, so that the same samples give the same waves.
    weakest = np.argsort(-np.abs(spectrum), kind="stable")[frequencies:]
    spectrum[weakest] = 0
    return np.fft.ifft(spectrum).real
