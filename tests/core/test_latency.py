import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.latency import LatencyHistogram, bin_of
from elastream.core.stats import Latency

SECONDS = st.lists(st.floats(1e-5, 1e4), min_size=1, max_size=50)


@given(first=SECONDS, second=SECONDS, share=st.floats(0.01, 1.0))
def test_the_sum_of_histograms_is_the_histogram_of_the_sum(first, second, share):
    parts = LatencyHistogram.sum([LatencyHistogram.of(first), LatencyHistogram.of(second)])
    whole = LatencyHistogram.of(first + second)
    assert parts == whole
    exact = np.quantile(first + second, share, method="inverted_cdf")
    assert whole.quantile(share) == pytest.approx(exact, rel=0.0101)


@given(st.floats(1e-7, 1e5))
def test_a_latency_is_in_the_bin_that_its_histogram_has(seconds):
    assert LatencyHistogram.of([seconds]) == LatencyHistogram({bin_of(seconds): 1.0})


def test_weights_are_counted():
    latency = Latency.of([1.0, 3.0], weights=[3.0, 1.0])
    assert latency.count == 4
    assert latency.mean == 1.5
    assert latency.p50 == pytest.approx(1.0, rel=0.01)
    assert latency.p99 == pytest.approx(3.0, rel=0.01)


def test_an_empty_histogram_tells_nothing():
    assert LatencyHistogram().count == 0
    assert LatencyHistogram().quantile(0.5) == 0
