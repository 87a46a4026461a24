"""Whatever happens, no event appears from nowhere and none vanishes uncounted."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.simulation.support import engine, trace

from elastream import Pipeline
from elastream.core.behaviour import Behaviour, OperatorBehaviour
from elastream.core.decision import Plan
from elastream.core.service_times import ByValue, Exponential, Fixed, Gamma, zipf
from elastream.engines.simulation import Arrivals, WhenFull

POOL = 4
SERVICE = st.one_of(
    st.builds(Fixed, st.floats(0.001, 0.5)),
    st.builds(Exponential, st.floats(0.01, 0.5)),
    st.builds(Gamma, st.floats(0.01, 0.5), st.floats(0.2, 2.0)),
    st.builds(lambda low: ByValue((low, 5 * low), zipf(2, 1.5)), st.floats(0.01, 0.1)),
)


@st.composite
def pipelines(draw):
    """A random DAG of up to five operators, each fed by some that come before it."""
    pipeline = Pipeline("random")
    nodes = [pipeline.source("in")]
    behaviours = {}
    for number in range(draw(st.integers(1, 5))):
        name = f"o{number}"
        grouping = draw(st.sampled_from(["pull", "shuffle", "load-aware"]))
        pipeline.add(len, name=name, pool=POOL, grouping=grouping)
        for origin in draw(st.sets(st.sampled_from(nodes), min_size=1, max_size=2)):
            share = draw(st.sampled_from([None, 0.2, 0.5]))
            pipeline.connect(origin, name, share=share if share and origin != "in" else None)
        behaviours[name] = OperatorBehaviour(draw(SERVICE), draw(st.sampled_from([0.5, 1.0, 2.0])))
        nodes.append(name)
    return pipeline, Behaviour(behaviours)


CONDITIONS = st.fixed_dictionaries(
    {
        "queue_bound": st.floats(5, 500),
        "when_full": st.sampled_from(WhenFull),
        "time_out": st.sampled_from([None, 0.5, 5.0]),
        "activation_delay": st.sampled_from([0.0, 0.7]),
        "restart_downtime": st.sampled_from([None, 1.3]),
        "arrivals": st.sampled_from(Arrivals),
        "seed": st.integers(0, 9),
    }
)
RATES = st.lists(st.floats(0, 200), min_size=2, max_size=12)
PLANS = st.lists(st.integers(1, POOL), min_size=3, max_size=3)


def shares_fit(pipeline):
    try:
        return pipeline.topology()
    except ValueError:
        return None


@given(drawn=pipelines(), conditions=CONDITIONS, rates=RATES, plans=PLANS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_events_are_conserved(drawn, conditions, rates, plans):
    pipeline, behaviour = drawn
    topology = shares_fit(pipeline)
    if topology is None:
        return
    running = engine(topology, trace(rates), behaviour, **conditions)
    before = dict.fromkeys(topology.by_name, 0.0)
    arrived = sent = 0.0
    for number, replicas in enumerate(plans):
        running.clock.sleep_until(3.5 * (number + 1) + (number == 2) * 0.5)
        stats = running.observe()
        arrived += sum(stats.samples)
        sent += stats.input
        for name, of in stats.operators.items():
            into = sum(stats.edges[e.origin, e.target] for e in topology.incoming[name])
            assert of.received == pytest.approx(into, abs=1e-6)
            left = before[name] + of.received - of.processed - of.dropped
            assert of.queued == pytest.approx(left, abs=1e-6)
            assert of.queued <= max(conditions["queue_bound"], POOL) + 1e-6
            assert min(of.received, of.processed, of.queued, of.dropped, of.busy) >= 0
            before[name] = of.queued
            parts = of.replicas.values()
            assert sum(part.processed for part in parts) == pytest.approx(of.processed, abs=1e-6)
            if conditions["when_full"] is WhenFull.BLOCK:
                lossless = not (conditions["time_out"] or conditions["restart_downtime"])
                assert of.dropped == 0 or not lossless
        for edge in topology.edges:
            if edge.origin in topology.by_name:
                out = stats.operators[edge.origin].emitted * behaviour.share(edge)
                assert stats.edges[edge.origin, edge.target] == pytest.approx(out, abs=1e-6)
        running.apply(Plan(dict.fromkeys(topology.by_name, replicas)))
    held = stats.sources["in"].queued
    assert sent + held == pytest.approx(arrived, abs=1e-6)
    assert held == 0 or conditions["when_full"] is WhenFull.BLOCK
