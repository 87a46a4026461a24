import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.predictors.linear import Lr


@settings(max_examples=50, derandomize=True, deadline=None, database=None)
@given(st.lists(st.integers(0, 100_000), min_size=2, max_size=100), st.integers(1, 20))
def test_agrees_with_numpy_least_squares(history: list[int], horizon: int) -> None:
    index = np.arange(len(history) + horizon)
    design = np.column_stack([np.ones(len(index)), index])
    solution, *_ = np.linalg.lstsq(design[: len(history)], np.array(history), rcond=None)
    expected = np.maximum(design[len(history) :] @ solution, 0)
    np.testing.assert_allclose(Lr().predict(history, horizon).values, expected, atol=1e-5)


def test_a_falling_line_stops_at_zero() -> None:
    assert Lr().predict([30, 20, 10], 3).values.tolist() == [0, 0, 0]
