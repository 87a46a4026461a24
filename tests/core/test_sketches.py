import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.core.sketches import CountMin, HashFamily
from elastream.errors import InvalidInputError

FAMILY = HashFamily.sized(epsilon=0.05, delta=0.05)


def test_figure_6_two_rows_by_four_columns():
    assert HashFamily.sized(epsilon=0.70, delta=0.25).shape == (2, 4)


def test_the_published_settings_give_five_rows_by_54_columns():
    assert FAMILY.shape == (5, 54)


@pytest.mark.parametrize("setting", [{"epsilon": 0.0}, {"delta": 1.0}])
def test_a_precision_that_makes_no_sense_is_refused(setting):
    with pytest.raises(InvalidInputError, match=next(iter(setting))):
        HashFamily.sized(**{"epsilon": 0.1, "delta": 0.1, **setting})


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 100)), min_size=1, max_size=300))
@settings(max_examples=50)
def test_a_sketch_never_underestimates(updates):
    values, amounts = (np.array(column) for column in zip(*updates, strict=True))
    sketch = CountMin.empty(FAMILY).add(values, amounts)
    distinct = np.unique(values)
    truth = np.array([amounts[values == value].sum() for value in distinct])
    assert np.all(sketch.estimate(distinct) >= truth * (1 - 1e-9))


@pytest.mark.parametrize("seed", range(5))
def test_few_estimates_pass_the_error_bound(seed):
    epsilon, delta = 0.05, 0.05
    values = np.random.default_rng(seed).zipf(1.2, 20_000) % 5000
    sketch = CountMin.empty(HashFamily.sized(epsilon, delta, seed)).add(values)
    distinct, truth = np.unique(values, return_counts=True)
    too_much = sketch.estimate(distinct) - truth >= epsilon * (len(values) - truth)
    assert too_much.mean() <= delta


@given(st.lists(st.integers(0, 99)), st.lists(st.integers(0, 99)))
@settings(max_examples=50)
def test_sketches_of_two_streams_add_up(one, other):
    empty = CountMin.empty(FAMILY)
    together = empty.add(np.array([*one, *other], dtype=int)).table
    apart = empty.add(np.array(one, dtype=int)).table + empty.add(np.array(other, dtype=int)).table
    np.testing.assert_array_equal(together, apart)


def test_rows_hash_independently():
    cells = FAMILY.cells(np.arange(1000))
    columns = cells - np.arange(5)[:, np.newaxis] * 54
    agree = (columns[0] == columns[1]).mean()
    assert agree == pytest.approx(1 / 54, abs=0.02)
    assert np.bincount(columns[0], minlength=54).min() > 0
