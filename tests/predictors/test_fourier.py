import numpy as np
import pytest
from numpy.polynomial import Polynomial

from elastream.errors import InvalidInputError
from elastream.predictors.fourier import Fft, strongest_waves

# Airline passengers per month, 1949 to 1960, in thousands (Box and Jenkins, series G).
PASSENGERS = """
112 118 132 129 121 135 148 148 136 119 104 118 115 126 141 135 125 149 170 170 158 133 114 140
145 150 178 163 172 178 199 199 184 162 146 166 171 180 193 181 183 218 230 242 209 191 172 194
196 196 236 235 229 243 264 272 237 211 180 201 204 188 235 227 234 264 302 293 259 229 203 229
242 233 267 269 270 315 364 347 312 274 237 278 284 277 317 313 318 374 413 405 355 306 271 306
315 301 356 348 355 422 465 467 404 347 305 336 340 318 362 348 363 435 491 505 404 359 310 337
360 342 406 396 420 472 548 559 463 407 362 405 417 391 419 461 472 535 622 606 508 461 390 432
"""


def test_hand_worked_example_with_the_defaults() -> None:
    """Four samples get a trend of degree one, and keep all of their four coefficients.

    The line through 1, 3, 2, 6 is 0.9 + 1.4 t: slope = (3 + 0 - 0.5 + 4.5) / 5 about the means 1.5
    and 3. What it leaves, 0.1, 0.7, -1.7, 0.9, repeats on top of the line from t = 4 on.
    """
    forecast = Fft().predict([1, 3, 2, 6], 5)
    np.testing.assert_allclose(forecast.values, [6.6, 8.6, 7.6, 11.6, 12.2])


def test_hand_worked_example_of_the_strongest_frequencies() -> None:
    """8, 3, 2, 3 is 4 on average; the rest, 4, -1, -2, -1, has the coefficients 0, 6, 4, 6.

    The two of amplitude 6 are one wave: (6 + 6) / 4 · cos(πt/2) = 3, 0, -3, 0.
    """
    forecast = Fft(frequencies=2, degree=0).predict([8, 3, 2, 3], 6)
    np.testing.assert_allclose(forecast.values, [7, 4, 1, 4, 7, 4], atol=1e-12)


def test_ten_coefficients_are_the_five_strongest_waves() -> None:
    t = np.arange(64)
    waves = [strength * np.cos(2 * np.pi * strength * t / 64) for strength in range(1, 9)]
    np.testing.assert_allclose(strongest_waves(sum(waves), 10), sum(waves[3:]), atol=1e-9)


def test_agrees_with_the_published_example_of_darts() -> None:
    """The example of its manual page: 20 frequencies and a trend of degree 2 on the passengers.

    Darts knows that these are months and leaves out the first 13 before it transforms; samples of
    seconds have no calendar, and keep all.
    """
    passengers = np.array(PASSENGERS.split(), dtype=float)
    index = np.arange(150)
    trend = Polynomial.fit(index[:144], passengers, 2)(index)
    forecast = trend[144:] + strongest_waves((passengers - trend[:144])[13:], 20)[:6]
    published = [471.79323146, 494.6381425, 504.5659999, 515.82463265, 520.59404623, 547.26720705]
    np.testing.assert_allclose(forecast, published)


def test_a_cubic_trend_goes_on() -> None:
    t = np.arange(18.0)
    cubic = 40 + 3 * t - 0.5 * t**2 + 0.1 * t**3
    np.testing.assert_allclose(Fft().predict(cubic[:12], 6).values, cubic[12:])


@pytest.mark.parametrize("history", [[10, 400], [10, 400, 20], [0, 0, 0, 100]])
def test_a_few_samples_do_not_explode(history: list[float]) -> None:
    assert Fft().predict(history, 6).values.max() <= 4 * max(history)


def test_a_long_horizon_repeats_the_period() -> None:
    t = np.arange(96)
    wave = 100 + 50 * np.sin(2 * np.pi * t / 12)
    np.testing.assert_allclose(Fft(degree=0).predict(wave[:24], 72).values, wave[24:])


@pytest.mark.parametrize("wrong", [{"frequencies": 0}, {"degree": -1}])
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    (name,) = wrong
    with pytest.raises(InvalidInputError, match=f"fft: {name} must be at least"):
        Fft(**wrong)
