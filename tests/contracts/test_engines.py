"""What every engine must do, whatever runs the events.

An attached query needs a cluster, which no other session of the process may have been before:
`tests/engines/attached/on_cluster.py` puts it through the same tests.
"""

import time
from contextlib import suppress

import numpy as np
import pytest
from tests.engines.simulation.support import constant

from elastream import Pipeline
from elastream.core.decision import Plan
from elastream.engines.base import Engine
from elastream.engines.simulation import SimulationEngine
from elastream.errors import ElastreamError, InvalidInputError

INTERVAL = 2.0


def topology():
    def same(batch):
        return batch

    pipeline = Pipeline("contract")
    source = pipeline.source("in")
    pipeline.add(same, name="parse", after=source, pool=4, execution_time=0.002)
    pipeline.add(same, name="clean", after="parse", chain=True, execution_time=0.001)
    pipeline.add(same, name="store", after="clean", pool=2, execution_time=0.001)
    return pipeline.topology()


def simulation(request):
    return SimulationEngine(topology(), constant(100, 60))


def spark(request):
    import pyarrow as pa

    def events(first, count):
        return pa.table({"id": range(first, first + count)})

    from elastream.engines.spark.driver.engine import SparkEngine
    from elastream.engines.spark.worker.trace_player import TraceSource

    session = request.getfixturevalue("spark_session")
    folder = request.getfixturevalue("tmp_path")
    source = TraceSource(events, 1.0, np.full(60, 100.0))
    return SparkEngine(topology(), {"in": source}, folder, session)


ENGINES = {"simulation": simulation, "spark": spark}


@pytest.fixture(
    params=[
        "simulation",
        # It asks for the session by itself, so that the simulator need not wait for it.
        pytest.param("spark", marks=pytest.mark.xdist_group("spark")),
    ]
)
def engine(request):
    running = ENGINES[request.param](request)
    yield running
    running.close()


def intervals(engine, count):
    for number in range(1, count + 1):
        engine.clock.sleep_until(number * INTERVAL)
        yield engine.observe()


def until(engine, reached, most=30):
    """The intervals up to the one in which it is reached."""
    for stats in intervals(engine, most):
        yield stats
        if reached(stats):
            return
    raise AssertionError(f"not within {most} intervals")


def test_it_is_an_engine(engine):
    assert isinstance(engine, Engine)


def test_time_starts_at_zero_and_passes(engine):
    start = engine.clock.now()
    engine.clock.sleep_until(start + 0.5)
    assert engine.clock.now() >= start + 0.5
    engine.clock.sleep_until(0.0)
    assert engine.clock.now() >= start + 0.5


def test_intervals_are_numbered_and_say_how_long_they_were(engine):
    seen, ends = [], []
    for stats in intervals(engine, 3):
        seen.append(stats)
        ends.append(engine.clock.now())
    assert [stats.interval for stats in seen] == [0, 1, 2]
    # The first one is shorter where an engine's time begins within an interval. The others are
    # together as long as the time that has passed: a machine that stalls makes one longer, and the
    # next one shorter.
    assert 0 < seen[0].duration <= ends[0]
    assert sum(stats.duration for stats in seen[1:]) == pytest.approx(ends[2] - ends[0], abs=0.5)
    assert all(stats.duration > 0 for stats in seen)


def test_everything_in_the_topology_is_measured(engine):
    (stats,) = intervals(engine, 1)
    topology = engine.topology
    assert set(stats.sources) == {source.name for source in topology.sources}
    assert set(stats.operators) == set(topology.by_name)
    assert set(stats.edges) == {(edge.origin, edge.target) for edge in topology.edges}
    assert all(len(source.samples) > 0 for source in stats.sources.values())


def test_counts_add_up_over_intervals(engine):
    queued = dict.fromkeys(engine.topology.by_name, 0.0)
    for stats in intervals(engine, 4):
        for name, of in stats.operators.items():
            queued[name] += of.received - of.processed - of.dropped - of.set_aside
            assert of.queued == pytest.approx(queued[name], abs=1e-6)
            assert 1 <= of.active <= engine.topology.by_name[name].pool


def test_a_chain_is_one_operator_and_what_is_inside_is_measured(engine):
    chain = engine.topology.operators[0]
    if not chain.inside:
        pytest.skip("an attached query has no chains")
    assert (chain.name, chain.inside) == ("parse", ("parse", "clean"))
    seen = list(until(engine, lambda stats: stats.operators["parse"].processed))
    parse, clean = seen[-1].operators["parse"].inside.values()
    assert parse.processed == parse.emitted == clean.received > 0
    assert seen[-1].operators["parse"].busy == pytest.approx(parse.busy + clean.busy)
    with pytest.raises(ElastreamError, match="clean"):
        engine.apply(Plan({"clean": 2}))


def test_events_reach_the_end_and_their_latency_is_known(engine):
    seen = list(until(engine, lambda stats: stats.latency))
    last = engine.topology.terminals[0]
    assert sum(stats.operators[last].processed for stats in seen) > 0
    latency = seen[-1].latency
    assert 0 < latency.p50 <= latency.p95 <= latency.p99
    assert latency.histogram.count == pytest.approx(latency.count)


def test_a_watcher_sees_every_sampling_window(engine):
    first = engine.topology.operators[0].name
    windows = []
    engine.watch(windows.append)
    seen = list(until(engine, lambda stats: stats.operators[first].processed and windows))
    assert [window.interval for window in windows] == list(range(len(windows)))
    for window in windows:
        assert window.duration > 0
        assert window.operators.keys() == engine.topology.by_name.keys()
        assert all(len(source.samples) == 1 for source in window.sources.values())
    processed = sum(window.operators[first].processed for window in windows)
    assert 0 <= processed <= sum(of.operators[first].processed for of in seen) + 1e-6


def test_two_watchers_see_the_same(engine):
    first, second = [], []
    engine.watch(first.append)
    engine.watch(second.append)
    list(until(engine, lambda stats: len(second) >= 2))
    assert second[0] in first
    assert second[1] in first


def test_a_watcher_that_fails_keeps_no_window_from_the_next(engine):
    failed, seen = [], []

    def fails_once(stats):
        failed.append(stats)
        if len(failed) == 1:
            raise ZeroDivisionError("a watcher")

    engine.watch(fails_once)
    engine.watch(seen.append)
    with suppress(ZeroDivisionError):  # A simulation watches in the thread of whoever waits.
        engine.clock.sleep_until(INTERVAL)
    list(until(engine, lambda stats: len(seen) >= 2))
    assert seen[:2] == failed[:2]


def test_whoever_sleeps_can_be_woken(engine):
    engine.clock.wake()
    began = time.monotonic()
    engine.clock.sleep_until(engine.clock.now() + 30.0)
    assert time.monotonic() - began < 15.0


def test_a_plan_is_followed(engine):
    wanted = {name: operator.pool - 1 or 1 for name, operator in engine.topology.by_name.items()}
    engine.apply(Plan(wanted))
    *_, last = until(
        engine, lambda stats: {name: of.active for name, of in stats.operators.items()} == wanted
    )
    for name, of in last.operators.items():
        assert set(of.replicas) <= set(range(engine.topology.by_name[name].pool))


def test_a_plan_may_leave_operators_out_and_must_not_pass_the_pool(engine):
    last = engine.topology.terminals[0]
    seen = intervals(engine, 2)
    before = next(seen).operators[last].active
    engine.apply(Plan({}))
    assert next(seen).operators[last].active == before
    with pytest.raises(ElastreamError, match=last):
        engine.apply(Plan({last: engine.topology.by_name[last].pool + 1}))


def test_a_plan_for_an_operator_that_is_not_there_is_refused(engine):
    with pytest.raises(InvalidInputError, match="'nobody'"):
        engine.apply(Plan({"nobody": 1}))


def test_closing_twice_is_closing_once_and_nothing_runs_after_it(engine):
    engine.close()
    engine.close()
    with pytest.raises(ElastreamError, match="closed"):
        engine.observe()
