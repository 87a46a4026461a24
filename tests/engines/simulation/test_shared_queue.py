import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.service_times import Fixed
from elastream.engines.simulation import SimulationSettings
from elastream.engines.simulation.curves import Grid
from elastream.engines.simulation.shared_queue import SharedQueue

COUNTS = st.lists(st.integers(0, 300), min_size=1, max_size=20)


def started(steps):
    queue = SharedQueue(Fixed(0.01), SimulationSettings(), np.random.default_rng(0))
    queue.begin(Grid.of(np.arange(steps + 1.0), 0.0), np.ones(steps, dtype=np.int64), np.ones(1), 1)
    return queue


@given(inflow=COUNTS)
def test_all_steps_at_once_are_the_same_as_one_after_the_other(inflow):
    quick, slow = started(len(inflow)), started(len(inflow))
    served = quick.free(np.array(inflow, dtype=float))
    quick.commit()
    slow.begin_steps()
    single = [slow.step(number, float(count), 100.0) for number, count in enumerate(inflow)]
    np.testing.assert_allclose(served, single, atol=1e-9)
    np.testing.assert_allclose(quick.curves().gone, slow.curves().gone, atol=1e-9)
    assert quick.waiting == slow.waiting
    assert quick.collect(1, 1.0, 1.0) == slow.collect(1, 1.0, 1.0)


def test_nothing_happens_before_it_is_committed():
    queue = started(3)
    assert queue.free(np.full(3, 200.0)) is not None
    assert queue.waiting == 0
    queue.commit()
    assert queue.waiting == 300


def test_a_queue_that_would_overflow_asks_for_single_steps():
    assert started(2).free(np.full(2, 60_000.0)) is None
