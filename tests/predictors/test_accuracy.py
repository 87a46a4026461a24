import math

import pytest

from elastream.errors import InvalidInputError
from elastream.predictors.accuracy import mae, mape, rmse

TRUTH, FORECAST = [100, 200, 400], [110, 180, 400]


def test_errors_by_hand() -> None:
    assert mae(TRUTH, FORECAST) == 10
    assert rmse(TRUTH, FORECAST) == pytest.approx(math.sqrt(500 / 3))
    assert mape(TRUTH, FORECAST) == pytest.approx(20 / 3)


def test_samples_of_zero_are_no_share() -> None:
    assert mape([0, 50], [10, 60]) == 20
    assert math.isnan(mape([0, 0], [10, 60]))


@pytest.mark.parametrize("measure", [mae, rmse, mape])
@pytest.mark.parametrize(("truth", "forecast"), [([], []), ([1, 2], [1]), ([[1, 2]], [1, 2])])
def test_unequal_or_empty_samples_are_refused(
    measure: type[float], truth: list[float], forecast: list[float]
) -> None:
    with pytest.raises(InvalidInputError, match="as many forecasts as samples"):
        measure(truth, forecast)
