import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.births import Births, Run

NOW = 10_000.0
TIMES = st.floats(0.0, 5_000.0).map(lambda at: round(at, 3))
RUNS = st.tuples(st.integers(1, 20), TIMES, TIMES).map(lambda run: Run(run[0], *sorted(run[1:])))
BIRTHS = st.lists(RUNS, max_size=6).map(lambda runs: Births(tuple(runs)))


def times(births):
    """What births stand for, one by one."""
    found = []
    for events, first, last in births.runs:
        step = (last - first) / (events - 1) if events > 1 else 0.0
        found += [first + step * place for place in range(events)]
    return found


def near(expected):
    return pytest.approx(expected, abs=1e-6)


@given(BIRTHS)
def test_every_event_has_a_time(births):
    assert births.times().tolist() == near(times(births))
    assert births.events == len(times(births))


@given(BIRTHS, st.integers(0, 130), st.integers(0, 130))
def test_events_in_a_row_keep_their_times(births, start, count):
    cut = births.cut(start, count)
    assert times(cut) == near(times(births)[start : start + count])


@given(BIRTHS, st.lists(st.integers(1, 40), max_size=6))
def test_parts_that_are_cut_and_joined_again_are_the_whole(births, sizes):
    parts, start = [], 0
    for size in [*sizes, 1000]:
        parts.append(births.cut(start, size))
        start += size
    assert times(Births.joined(parts)) == near(times(births))


@given(st.lists(BIRTHS, max_size=4))
def test_joined_batches_keep_all_their_times(parts):
    joined = Births.joined(parts)
    assert times(joined) == near([at for part in parts for at in times(part)])


@given(BIRTHS, st.data())
def test_chosen_events_keep_their_run_and_its_ends(births, data):
    """In between they are spread evenly: what a key chooses of a run is spread like the run."""
    places = sorted(data.draw(st.sets(st.integers(0, max(births.events - 1, 0)))))
    places = places if births.events else []
    found = births.chosen(np.array(places, dtype=np.intp))
    assert found.events == len(places)
    run_of = [number for number, run in enumerate(births.runs) for _ in range(run.events)]
    expected = [times(births)[place] for place in places]
    for run in {run_of[place] for place in places}:
        mine = [i for i, place in enumerate(places) if run_of[place] == run]
        chosen = [times(found)[i] for i in mine]
        exact = [expected[i] for i in mine]
        assert (chosen[0], chosen[-1]) == near((exact[0], exact[-1]))
        assert chosen == near(sorted(chosen))


@given(BIRTHS, st.integers(1, 5), st.integers(0, 4))
def test_events_chosen_at_even_distances_keep_their_times(births, every, first):
    flat = Births(tuple(Run(run.events, run.first, run.first) for run in births.runs))
    places = np.arange(first, births.events, every)
    assert times(flat.chosen(places)) == near([times(flat)[place] for place in places])
    one_run = Births(births.runs[:1])
    places = np.arange(first, one_run.events, every)
    assert times(one_run.chosen(places)) == near([times(one_run)[place] for place in places])


@given(BIRTHS, st.integers(0, 150))
def test_output_is_as_old_as_the_input_at_the_same_relative_place(births, events):
    output = births.of_output(events)
    before = times(births)
    if events == len(before):
        assert output == births
        return
    assert output.events == (events if before else 0)
    steps = [(run.last - run.first) / max(run.events - 1, 1) for run in births.runs]
    for place, at in enumerate(times(output)):
        source = int((place + 0.5) * len(before) / events)
        assert at == pytest.approx(before[source], abs=max(steps) + 1e-6)


@given(st.lists(RUNS, max_size=20).map(lambda runs: Births(tuple(runs))))
def test_latencies_are_those_of_every_single_event(births):
    """At the edge of a bin, both may round differently."""
    found = births.latencies(NOW)
    expected = LatencyHistogram.of([NOW - at for at in times(births)] or [])
    assert found.count == expected.count == births.events

    def bins(histogram):
        return np.repeat(list(histogram.bins), np.array(list(histogram.bins.values()), dtype=int))

    if births.events:
        assert np.abs(bins(found) - bins(expected)).max() <= 1


@given(st.integers(1, 500), st.floats(0.001, 100.0), st.floats(0.0, 0.2))
def test_latencies_of_many_events_close_together_are_those_of_every_single_one(events, age, span):
    births = Births.evenly(events, NOW - age - span, NOW - age)
    found = births.latencies(NOW)
    expected = LatencyHistogram.of(NOW - births.times())
    assert found.count == events
    assert found.mean == pytest.approx(expected.mean, rel=0.01)
    for share in (0.1, 0.5, 0.99):
        assert found.quantile(share) == pytest.approx(expected.quantile(share), rel=0.03)


def test_events_that_arrived_at_once_are_counted_once_for_each():
    found = Births.evenly(40, NOW - 1.0).latencies(NOW)
    assert dict(found.bins) == dict(LatencyHistogram.of([1.0] * 40).bins)


ANY_TIME = st.floats(allow_nan=False)


@given(st.lists(st.tuples(st.integers(1, 2**32 - 1), ANY_TIME, ANY_TIME), max_size=5))
def test_births_are_stored_exactly(runs):
    births = Births(tuple(Run(*run) for run in runs))
    assert Births.from_bytes(births.to_bytes()) == births


def test_no_events_have_no_births():
    nothing = Births.evenly(0, 1.0)
    assert (nothing.events, nothing.times().tolist(), nothing.to_bytes()) == (0, [], b"")
    assert nothing.cut(0, 5) == nothing.of_output(3) == Births(())
    assert nothing.latencies(NOW).count == 0
