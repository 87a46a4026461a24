import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from elastream.errors import InvalidInputError, MissingExtraError
from elastream.predictors.fitting import fitting
from elastream.predictors.learned import Ann, Rf
from elastream.predictors.svr import Svr

RISING = np.linspace(200, 4_000, 60)


def test_the_network_follows_a_line() -> None:
    forecast = Ann().predict(RISING, 6).values
    np.testing.assert_allclose(forecast, np.linspace(4_064, 4_386, 6), rtol=0.1)


def test_the_network_that_stops_at_its_last_iteration_does_not_warn() -> None:
    noise = np.random.default_rng(1).uniform(0, 1e7, 30)
    assert Ann().predict(noise, 6).fallback is None


def test_the_forest_answers_with_what_it_has_seen() -> None:
    forecast = Rf().predict(RISING, 6).values
    assert np.all((forecast > 3_800) & (forecast <= 4_000))


def test_the_machine_follows_a_wave() -> None:
    wave = 500 + 200 * np.sin(2 * np.pi * np.arange(106) / 20)
    np.testing.assert_allclose(Svr().predict(wave[:100], 6).values, wave[100:], atol=60)


@pytest.mark.parametrize("model", [Ann, Rf])
def test_the_seed_decides(model: type[Ann] | type[Rf]) -> None:
    history = np.random.default_rng(1).uniform(3_000, 5_000, 40)
    first = model(seed=1).predict(history, 3).values
    np.testing.assert_array_equal(first, model(seed=1).predict(history, 3).values)
    assert np.any(first != model(seed=2).predict(history, 3).values)


@pytest.mark.parametrize("model", [Ann, Rf, Svr])
def test_only_the_last_window_is_fitted(model: type[Ann] | type[Rf] | type[Svr]) -> None:
    recent = RISING[-20:]
    forecast = model(window=20).predict(np.concatenate([[9e5, 1.0], recent]), 3)
    np.testing.assert_array_equal(forecast.values, model().predict(recent, 3).values)


def test_a_machine_whose_window_is_constant_stays_there() -> None:
    history = [1.0, 2.0] + [5.0] * 10
    assert Svr(window=8).predict(history, 2).values.tolist() == [5, 5]


@pytest.mark.parametrize(
    ("model", "wrong", "message"),
    [
        (Ann, {"window": 1}, "ann: window must be at least 2, not 1"),
        (Rf, {"window": 0}, "rf: window must be at least 2, not 0"),
        (Svr, {"window": 3}, "svr: window must be at least 4, not 3"),
        (Svr, {"lags": 0}, "svr: lags must be at least 1, not 0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    model: type[Ann], wrong: dict[str, int], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        model(**wrong)


@pytest.mark.parametrize(
    ("model", "module"),
    [(Ann, "sklearn.neural_network"), (Rf, "sklearn.ensemble"), (Svr, "sklearn.svm")],
)
def test_without_sklearn_the_extra_is_named(
    model: type[Ann], module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'elastream\[forecast\]'"):
        model()


def test_fits_on_many_threads_leave_the_warnings_as_they_were() -> None:
    before = list(warnings.filters)

    def fit(_: int) -> None:
        with fitting():
            warnings.warn("not converged", RuntimeWarning, stacklevel=1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fit, range(200)))
    assert list(warnings.filters) == before


def test_the_catalogue_and_the_help_import_no_library() -> None:
    program = (
        "import sys; from elastream.predictors import PREDICTORS; import elastream.cli;"
        "[PREDICTORS[name] for name in ('lr', 'fft', 'ann', 'svr', 'rf', 'arima', 'regression')];"
        "print(*{'sklearn', 'statsmodels', 'fastapi', 'matplotlib'} & set(sys.modules))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == ""


def test_ctrl_c_in_the_middle_of_a_fit_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn.neural_network.MLPRegressor._backprop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Ann().predict(RISING, 6)
