"""What every policy must do, whatever its idea: alone, and in a loop with the simulator."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.control import ControlLoop, Outcome
from elastream.engines.simulation import SimulationEngine, SimulationSettings
from elastream.policies import POLICIES
from elastream.policies.guards import guarded
from elastream.predictors import PREDICTORS
from elastream.workloads.traces import Trace
from support.pipelines import context, interval, line

LINE = line("clean", "store", pool=8, minimum=1, execution_time=0.002)
TD = 10.0
FUTURE = (6000.0,) * 100
SCALES_BY_ITSELF = [name for name in POLICIES if name != "static"]


def policy_named(name):
    return POLICIES[name](future=FUTURE) if name == "oracle" else POLICIES[name]()


@pytest.fixture(params=POLICIES, scope="module")
def policy(request):
    return policy_named(request.param)


counts = st.one_of(st.just(0.0), st.floats(0, 1e4), st.sampled_from([1e9, 1e15]))
contexts = st.builds(
    lambda events, queued, active, et, ahead: context(
        LINE,
        *(
            interval(LINE, n, number=i, td=TD, active=active, queued=queued, et=et)
            for i, n in enumerate(events)
        ),
        forecast=ahead,
        ahead=ahead * 6,
        et=et,
    ),
    st.lists(counts, min_size=1, max_size=8),
    counts,
    st.integers(1, 8),
    st.sampled_from([0.0, 1e-9, 0.002, 5.0, 1e6]),
    st.lists(counts, min_size=1, max_size=1),
)


@given(known=contexts)
@settings(max_examples=60)
def test_no_plan_leaves_the_pool_whatever_was_measured(policy, known):
    plan = policy.decide(known)
    assert set(plan.replicas) == set(LINE.by_name)
    allowed = guarded(plan, known)
    assert all(1 <= count <= 8 for count in plan.replicas.values())
    assert allowed.replicas == plan.replicas


@given(known=contexts)
@settings(max_examples=20)
def test_the_same_context_gives_the_same_plan(policy, known):
    assert policy.decide(known) == policy.decide(known)


def test_every_operator_gets_a_reason_with_words(policy):
    plan = policy.decide(
        context(
            LINE,
            *[interval(LINE, 6000, i, td=TD) for i in range(3)],
            forecast=[6000],
            ahead=[6000] * 6,
        )
    )
    assert all(str(reason) for name in LINE.by_name for reason in plan.reasons[name])


def test_a_policy_has_a_name_a_paper_and_comparable_parameters(policy):
    assert POLICIES[policy.name]
    assert policy.paper
    assert policy == policy_named(policy.name)


def run(name, rates, cycles, initial=1):
    """The loop over a simulated line; `rates` in events/s, one for every second."""
    values = np.asarray(rates, dtype=float)
    trace = Trace(np.arange(len(values)) * 1.0, values, 1.0)
    start = SimulationSettings(initial=dict.fromkeys(LINE.by_name, initial))
    engine = SimulationEngine(LINE, trace, settings=start)
    chosen = policy_named(name)
    if name == "oracle":
        future = values.reshape(-1, int(TD)).sum(axis=1)
        chosen = POLICIES[name](future=tuple(future))
    loop = ControlLoop(engine, chosen, PREDICTORS["basic"](), td=TD)
    return list(loop.run(cycles))


@pytest.mark.parametrize("name", POLICIES)
def test_on_constant_input_nothing_changes_after_the_third_interval(name):
    # 1.2 replicas of work, for three.
    cycles = run(name, [600] * 300, 20, initial=3)
    settled = [cycle.outcome for cycle in cycles[3:]]
    late = [str(change) for cycle in cycles[3:] for change in cycle.changes]
    assert set(settled) == {Outcome.UNCHANGED}, late


@pytest.mark.parametrize("name", SCALES_BY_ITSELF)
def test_after_a_step_the_backlog_goes_to_zero(name):
    # From 0.4 replicas of work to 2.4.
    cycles = run(name, [200] * 50 + [1200] * 350, 40)
    queued = [of.queued for of in cycles[-1].stats.operators.values()]
    assert queued == pytest.approx([0, 0], abs=60)


@pytest.mark.parametrize("name", SCALES_BY_ITSELF)
def test_a_burst_of_a_million_times_the_usual_is_survived(name):
    rates = [5.0] * 60 + [5e6] * 10 + [5.0] * 130
    cycles = run(name, rates, 20)
    assert Outcome.FAILED not in {cycle.outcome for cycle in cycles}
    for cycle in cycles:
        assert all(1 <= of.active <= 8 for of in cycle.stats.operators.values())
        assert all(math.isfinite(of.queued) for of in cycle.stats.operators.values())
