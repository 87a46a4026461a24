import numpy as np
import pytest

from elastream.errors import InvalidInputError
from elastream.predictors.fourier import Fft, strongest_waves


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
