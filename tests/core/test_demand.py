import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.demand import (
    Demand,
    demands,
    for_busiest,
    output_shares,
    recent_source_shares,
    required_replicas,
)
from elastream.core.pipeline import Pipeline
from elastream.core.stats import IntervalStats, OperatorStats, ReplicaStats, SourceStats


def same(batch):
    return batch


def topology_of(sources, edges, pool=1000):
    pipeline = Pipeline()
    for source in sources:
        pipeline.source(source)
    for name in dict.fromkeys(target for _, target in edges):
        pipeline.add(same, name=name, pool=pool)
    for origin, target in edges:
        pipeline.connect(origin, target)
    return pipeline.topology()


def stats_of(topology, sources, processed, edges, queued=None, held_back=None):
    """An interval of one second; what an operator received is what its edges brought."""
    queued, held_back = queued or {}, held_back or {}
    received = dict.fromkeys(topology.by_name, 0.0)
    for (_, target), events in edges.items():
        received[target] += events
    return IntervalStats(
        interval=0,
        duration=1.0,
        sources={name: SourceStats(n, held_back.get(name, 0)) for name, n in sources.items()},
        operators={
            name: OperatorStats(received[name], processed[name], 0, queued.get(name, 0), 0, 1)
            for name in topology.by_name
        },
        edges=edges,
    )


DIAMOND = [("in", "o1"), ("o1", "o2"), ("o1", "o3"), ("o2", "o4"), ("o3", "o4")]


def diamond(**more):
    topology = topology_of(["in"], DIAMOND)
    flows = dict(zip(DIAMOND, [100, 70, 30, 28, 30], strict=True))
    processed = {"o1": 100, "o2": 70, "o3": 30, "o4": 58}
    return topology, stats_of(topology, {"in": 100}, processed, flows, **more)


def expected(topology, stats, forecast, **how):
    return demands(topology, stats, forecast, output_shares(topology, stats), **how)


def test_figure_6_four_operators_receive_100_70_30_and_58():
    found = expected(*diamond(), forecast=100)
    assert [demand.received for demand in found.values()] == pytest.approx([100, 70, 30, 58])
    assert found["o4"].share == pytest.approx(0.58)


def test_events_queued_upstream_flow_down_the_dag():
    queued = {"o1": 10, "o2": 5, "o4": 1}
    found = expected(*diamond(queued=queued), forecast=0)
    # o2: 5 + 10 * 0.7; o3: 10 * 0.3; o4: 1 + 12 * 0.4 + 3 * 1
    assert [demand.queued for demand in found.values()] == pytest.approx([10, 12, 3, 8.8])


def test_presps_counts_only_the_operators_own_queue():
    queued = {"o1": 10, "o2": 5, "o4": 1}
    found = expected(*diamond(queued=queued), forecast=0, upstream=False)
    assert [demand.expected for demand in found.values()] == [10, 5, 0, 1]


def test_what_a_full_pipeline_holds_back_is_still_to_come():
    found = expected(*diamond(held_back={"in": 50}), forecast=0)
    assert [demand.queued for demand in found.values()] == pytest.approx([50, 35, 15, 29])


def test_several_sources_share_the_forecast_as_they_shared_the_input():
    topology = topology_of(["a", "b"], [("a", "x"), ("b", "x"), ("b", "y")])
    edges = {("a", "x"): 30, ("b", "x"): 10, ("b", "y"): 10}
    stats = stats_of(topology, {"a": 30, "b": 10}, {"x": 40, "y": 10}, edges)
    found = expected(topology, stats, forecast=80)
    assert (found["x"].received, found["y"].received) == pytest.approx((80, 20))


def two_sources(*seconds, held_back=({},)):
    """Intervals in which two sources sent these events; `held_back` at the end of the last ones."""
    topology = topology_of(["a", "b"], [("a", "x"), ("b", "y")])
    held = [{}] * (len(seconds) - len(held_back)) + list(held_back)
    nothing = {"x": 0, "y": 0}
    return topology, [
        stats_of(topology, {"a": a, "b": b}, nothing, {}, held_back=left)
        for (a, b), left in zip(seconds, held, strict=True)
    ]


def test_bursts_of_one_source_after_the_other_are_shares_of_both():
    topology, past = two_sources((0, 900), (300, 0), (0, 100), (300, 0), (0, 100))
    shares = recent_source_shares(past, 4.0)
    assert shares == {"a": 0.75, "b": 0.25}
    edges = {("a", "x"): 1.0, ("b", "y"): 1.0}
    found = demands(topology, past[-1], 80, edges, sources=shares)
    assert (found["x"].received, found["y"].received) == (60, 20)


def test_what_a_source_holds_back_has_arrived_there_when_it_was_held_back():
    _, past = two_sources((0, 0), (50, 100), (50, 100), held_back=({"a": 400}, {}, {"a": 600}))
    assert recent_source_shares(past, 2.0) == {"a": 0.6, "b": 0.4}
    assert recent_source_shares(past[:1], 2.0) == {"a": 0.5, "b": 0.5}


def test_silent_sources_are_taken_to_be_alike():
    topology = topology_of(["a", "b"], [("a", "x"), ("b", "y")])
    stats = stats_of(topology, {"a": 0, "b": 0}, {"x": 0, "y": 0}, {})
    found = expected(topology, stats, forecast=10)
    assert (found["x"].received, found["y"].received) == (5, 5)


def test_an_edge_whose_origin_did_nothing_keeps_what_is_known_of_it():
    pipeline = Pipeline()
    pipeline.add(same, after=pipeline.source("in"), name="a")
    pipeline.add(same, after="a", name="b", share=0.3)
    pipeline.add(same, after="a", name="c")
    topology = pipeline.topology()
    stats = stats_of(topology, {"in": 0}, {"a": 0, "b": 0, "c": 0}, {})
    assert output_shares(topology, stats, {("in", "a"): 0.9}) == {
        ("in", "a"): 0.9,
        ("a", "b"): 0.3,
        ("a", "c"): 1.0,
    }


def test_replicas_are_planned_where_the_execution_time_is_known():
    topology, stats = diamond()
    found = expected(topology, stats, forecast=100)
    times = {"o1": 0.02, "o2": 0.02, "o4": 0.1}
    assert required_replicas(topology, found, times, 1.0) == {"o1": 2, "o2": 2, "o4": 6}


@st.composite
def layered_splits(draw):
    """A DAG in layers in which every node splits all of its events among the next layer."""
    widths = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    layers = [[f"n{i}.{j}" for j in range(width)] for i, width in enumerate(widths)]
    edges = [(a, b) for up, down in itertools.pairwise(layers) for a in up for b in down]
    weights = {edge: draw(st.floats(0.01, 1)) for edge in edges}
    return layers, weights


@given(layered_splits(), st.floats(1, 1e9))
def test_shares_along_a_dag_add_up(splits, total):
    layers, weights = splits
    topology = topology_of(layers[0], list(weights))
    flow = {name: total / len(layers[0]) for name in layers[0]}
    edges = {}
    for layer in layers[:-1]:
        for name in layer:
            out = {edge: weight for edge, weight in weights.items() if edge[0] == name}
            for edge, weight in out.items():
                edges[edge] = flow[name] * weight / sum(out.values())
                flow[edge[1]] = flow.get(edge[1], 0.0) + edges[edge]
    sources = {name: flow[name] for name in layers[0]}
    stats = stats_of(topology, sources, {name: flow[name] for name in topology.by_name}, edges)
    found = expected(topology, stats, forecast=2 * total)
    for layer in layers[1:]:
        assert sum(found[name].share for name in layer) == pytest.approx(1)
        assert sum(found[name].received for name in layer) == pytest.approx(2 * total)


def test_the_busiest_replica_of_an_operator_with_a_key_counts():
    topology = topology_of(["in"], [("in", "work")], pool=8)
    busy = {0: ReplicaStats(600.0, 0.6), 1: ReplicaStats(200.0, 0.2)}
    work = OperatorStats(800.0, 800.0, 0, 0, 0.8, 2, heaviest_lane=0.1, replicas=busy)
    stats = IntervalStats(0, 1.0, {"in": SourceStats(800.0, 0)}, {"work": work}, {})
    demand, times = {"work": Demand(1.0, 4000.0, 0.0)}, {"work": 0.001}
    assert work.skew == pytest.approx(1.5)
    assert required_replicas(topology, demand, times, 1.0) == {"work": 4}
    assert required_replicas(topology, demand, times, 1.0, stats) == {"work": 6}


@given(st.integers(1, 50), st.integers(1, 50), st.floats(0.01, 1.0))
def test_more_replicas_than_help_the_busiest_one_are_not_asked_for(even, more, heaviest):
    found = for_busiest(even, even + more, heaviest)
    assert even <= found <= even + more
    assert found == even or (found - 1) * heaviest < 1
