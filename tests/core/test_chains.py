import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.behaviour import Behaviour, OperatorBehaviour
from elastream.core.chains import HOP_SECONDS, Chains
from elastream.core.evaluation import events_out
from elastream.core.folding import FoldedBehaviour, fold_edges, fold_operators
from elastream.core.pipeline import Pipeline
from elastream.core.service_times import Exponential, Fixed
from elastream.core.stats import IntervalStats, OperatorStats, ReplicaStats
from elastream.engines.simulation.flow import Gains
from elastream.errors import InvalidTopologyError, UnknownNameError

QUICK, SLOW = HOP_SECONDS / 2, 20 * HOP_SECONDS


def same(batch):
    return batch


def line(*settings, chaining="declared"):
    """Operators a, b, c and so on, one after the other."""
    pipeline = Pipeline("line", chaining=chaining)
    before = pipeline.source("in")
    for name, each in zip("abcdef", settings, strict=False):
        pipeline.add(same, name=name, after=before, **each)
        before = name
    return pipeline.topology()


def chains_of(*settings, chaining="auto", costs=None):
    return Chains.planned(line(*settings, chaining=chaining), costs or {})


def groups(chains):
    return [chains.members(name) for name in chains.topology.by_name]


# Which operators are chained.


def test_only_what_says_so_is_chained_unless_the_pipeline_decides():
    settings = {"execution_time": QUICK}, {"chain": True}, {"execution_time": QUICK}
    assert groups(chains_of(*settings, chaining="declared")) == [("a", "b"), ("c",)]
    assert groups(chains_of(*settings, chaining="auto")) == [("a", "b", "c")]
    assert groups(chains_of(*settings, chaining="none")) == [("a",), ("b",), ("c",)]


def test_auto_chains_work_that_is_small_beside_a_hop_as_declared_or_as_measured():
    slow = {"execution_time": SLOW}
    assert groups(chains_of(slow, slow)) == [("a",), ("b",)]
    assert groups(chains_of(slow, slow, costs={"b": QUICK})) == [("a", "b")]
    assert groups(chains_of(slow, slow, costs={"a": QUICK})) == [("a", "b")]
    assert groups(chains_of({}, {})) == [("a",), ("b",)]
    reasons = [str(link) for link in chains_of(slow, slow, {}, costs={"b": QUICK}).links]
    assert reasons[0] == "a -> b: chained ('b' takes 25 µs per event, a hop 50 µs)"


def test_auto_chains_operators_with_the_same_key():
    by_user = {"grouping": "key", "key": "user"}
    assert groups(chains_of(by_user, by_user)) == [("a", "b")]
    other = {"grouping": "key", "key": "shop", "execution_time": QUICK}
    assert groups(chains_of(by_user, other)) == [("a",), ("b",)]
    assert groups(chains_of({"execution_time": QUICK}, by_user)) == [("a",), ("b",)]


def test_auto_leaves_alone_what_may_need_more_replicas():
    quick = {"execution_time": QUICK}
    assert groups(chains_of({**quick, "pool": 4}, {**quick, "pool": 8})) == [("a",), ("b",)]
    assert groups(chains_of({**quick, "pool": 8}, {**quick, "pool": 4})) == [("a", "b")]
    assert groups(chains_of(quick, {**quick, "chain": False})) == [("a",), ("b",)]


def test_a_chain_may_branch_and_ends_where_several_come_together():
    pipeline = Pipeline()
    pipeline.add(same, name="a", after=pipeline.source("in"))
    pipeline.add(same, name="b", after="a", chain=True)
    pipeline.add(same, name="c", after="a", chain=True, when=len)
    pipeline.add(same, name="d", after=["b", "c"])
    chains = Chains.planned(pipeline.topology())
    assert groups(chains) == [("a", "b", "c"), ("d",)]
    assert chains.members("b") == ("b",)
    assert [str(edge) for edge in chains.topology.edges] == ["in -> a", "a -> d"]
    assert chains.leaving("a") == ("b", "c")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ([{"chain": True}], "operator 'a': chain=True, but no operator comes before it"),
        (
            [{}, {"chain": True, "grouping": "key", "key": "user"}],
            "operator 'b': chain=True, but its key 'user' .* 'a', where the chain begins, has no",
        ),
        (
            [{"grouping": "key", "key": "shop"}, {"chain": True, "grouping": "key", "key": "user"}],
            "needs events redistributed: 'a', where the chain begins, has the key 'shop'",
        ),
    ],
)
def test_a_chain_that_cannot_be_is_refused(settings, problem):
    with pytest.raises(InvalidTopologyError, match=problem):
        line(*settings)


def test_several_predecessors_are_refused_and_named():
    pipeline = Pipeline()
    for name in "ab":
        pipeline.add(same, name=name, after=pipeline.source(f"in-{name}"))
    pipeline.add(same, name="c", after=["a", "b"], chain=True)
    with pytest.raises(InvalidTopologyError, match=r"'c': chain=True, .* several .*: a, b"):
        pipeline.topology()


def test_an_unknown_way_of_chaining_is_refused():
    with pytest.raises(UnknownNameError, match="chaining 'always'"):
        line({}, chaining="always")


def test_settings_of_its_own_that_do_not_count_are_named():
    (link,) = chains_of({"pool": 16}, {"pool": 4, "lanes": 9, "chain": True}).links
    expected = "pool=4 and lanes=9 have no effect: a chain has those of its first operator 'a'"
    assert expected in link.reason
    assert (
        Chains.planned(line({"pool": 16}, {"pool": 4, "chain": True})).topology.by_name["a"].pool
        == 16
    )


def test_settings_that_nobody_chose_are_not_named():
    (link,) = chains_of({"pool": 16, "lanes": 64}, {"chain": True}).links
    assert link.reason == "chain=True"


# What was kept with a state.


def test_kept_chains_are_what_they_were_and_refused_where_they_do_not_fit():
    topology = line({}, {"chain": True}, {})
    kept = Chains.kept(topology, {"c": "b"}, "kept")
    assert groups(kept) == [("a",), ("b", "c")]
    keyed = line({}, {"grouping": "key", "key": "user"})
    with pytest.raises(InvalidTopologyError, match="'b': kept, but its key"):
        Chains.kept(keyed, {"b": "a"}, "kept")


def test_kept_chains_are_refused_where_an_operator_has_come_in_between_or_the_first_has_gone():
    topology = line({}, {}, {})
    for origin in ("a", "gone"):
        with pytest.raises(InvalidTopologyError, match=f"'c': kept, but .* not follow '{origin}'"):
            Chains.kept(topology, {"c": origin}, "kept")
    assert groups(Chains.kept(topology, {"gone": "c"}, "kept")) == [("a",), ("b",), ("c",)]


# The effective topology.


def test_a_chain_is_one_operator_with_its_heads_settings_and_the_work_of_all():
    chains = chains_of(
        {"pool": 4, "minimum": 2, "execution_time": 0.001, "takes": ("id",)},
        {"chain": True, "execution_time": 0.002},
        {"chain": True, "execution_time": 0.004, "gives": ("id", "label")},
    )
    (one,) = chains.topology.operators
    assert (one.name, one.pool, one.minimum, one.inside) == ("a", 4, 2, ("a", "b", "c"))
    assert (one.takes, one.gives) == (("id",), ("id", "label"))
    assert one.execution_time == pytest.approx(0.007)


def test_planning_an_effective_topology_again_changes_nothing():
    chains = chains_of({}, {"chain": True}, {})
    again = Chains.planned(chains.topology)
    assert again.topology == chains.topology
    assert not again.chained


def test_without_chains_the_topology_is_the_declared_one_and_all_of_it_travels():
    chains = chains_of({}, {}, chaining="declared")
    assert chains.topology is chains.declared
    assert pickle.loads(pickle.dumps(chains)).topology.by_name.keys() == {"a", "b"}


# Folding.

rates = st.floats(0.1, 3.0)


@st.composite
def chained_lines(draw):
    """A line of operators, some of which are chained, with selectivities and conditions."""
    count = draw(st.integers(2, 6))
    flags = [False, *draw(st.lists(st.booleans(), min_size=count - 1, max_size=count - 1))]
    pipeline = Pipeline()
    before = pipeline.source("in")
    splits, behaviours = {}, {}
    for name, flag in zip("abcdef", flags, strict=False):
        when = len if draw(st.booleans()) else None
        pipeline.add(same, name=name, after=before, chain=flag, when=when)
        if when:
            splits[before, name] = draw(st.floats(0.1, 1.0))
        behaviours[name] = OperatorBehaviour(Fixed(draw(st.floats(1e-5, 1e-2))), draw(rates))
        before = name
    return pipeline.topology(), Behaviour(behaviours, splits)


def work_per_event(topology, behaviour):
    """Seconds of work for one event of the source, and what reaches every operator."""
    gains = Gains.of(topology, behaviour).targets
    reached, seconds = {"in": 1.0}, 0.0
    for name in topology.order:
        if name in topology.by_name:
            (edge,) = topology.incoming[name]
            reached[name] = reached[edge.origin] * gains[edge.origin][name]
            seconds += reached[name] * behaviour.of(topology, name).time.mean
    return seconds, reached


@given(chained_lines())
def test_folding_a_behaviour_keeps_the_work_and_the_flow(given_line):
    topology, behaviour = given_line
    folded = FoldedBehaviour.of(topology, behaviour)
    seconds, reached = work_per_event(topology, behaviour)
    folded_seconds, folded_reached = work_per_event(folded.chains.topology, folded.behaviour)
    assert folded_seconds == pytest.approx(seconds)
    for name in folded.chains.topology.by_name:
        assert folded_reached[name] == pytest.approx(reached[name])


@given(chained_lines(), st.floats(1, 1000))
def test_unfolding_shows_what_each_operator_did(given_line, processed):
    topology, behaviour = given_line
    folded = FoldedBehaviour.of(topology, behaviour)
    for head, of in folded.chains.topology.by_name.items():
        time = folded.behaviour.of(folded.chains.topology, head).time.mean
        stats = OperatorStats(processed, processed, 0.0, 0.0, processed * time, 1)
        inside = folded.unfolded(head, stats).inside
        assert tuple(inside) == of.inside
        if inside:
            assert sum(each.busy for each in inside.values()) == pytest.approx(stats.busy)


def test_service_times_in_a_chain_add_up_and_vary_less():
    topology = line({}, {"chain": True})
    each = OperatorBehaviour(Exponential(0.002))
    folded = FoldedBehaviour.of(topology, Behaviour({"a": each, "b": each}))
    time = folded.behaviour.of(folded.chains.topology, "a").time
    assert time.mean == pytest.approx(0.004)
    assert time.variation == pytest.approx(0.5**0.5)


def stats_of(received, processed, emitted, busy, queued=0.0, errors=None, cpu=0.0):
    replica = ReplicaStats(processed, busy, queued, cpu)
    of = OperatorStats(received, processed, emitted, queued, busy, 1, replicas={0: replica})
    if not errors:
        return of
    return OperatorStats(
        received, processed, emitted, queued, busy, 1,
        set_aside=sum(errors.values()), errors=errors, replicas={0: replica},
    )  # fmt: skip


def test_statistics_of_a_chain_are_those_of_its_operators_together():
    chains = chains_of({}, {"chain": True}, {}, chaining="declared")
    declared = {
        "a": stats_of(100, 98, 98, 1.0, queued=2, errors={"ValueError": 2.0}, cpu=0.3),
        "b": stats_of(98, 97, 40, 2.0, queued=1, errors={"ValueError": 1.0}),
        "c": stats_of(40, 40, 40, 0.5),
    }
    found = fold_operators(chains, declared)
    assert set(found) == {"a", "c"}
    one = found["a"]
    assert (one.received, one.processed, one.emitted, one.queued) == (100, 98, 40, 3)
    assert (one.busy, one.set_aside, one.errors) == (3.0, 3.0, {"ValueError": 3.0})
    assert one.execution_time == pytest.approx(3.0 / 98)
    assert (one.replicas[0].busy, one.replicas[0].cpu) == (3.0, 0.3)
    assert list(one.inside) == ["a", "b"]
    edges = {("in", "a"): 100.0, ("a", "b"): 98.0, ("b", "c"): 40.0}
    assert fold_edges(chains, edges) == {("in", "a"): 100.0, ("a", "c"): 40.0}


def test_events_leave_where_no_operator_follows_also_inside_a_chain():
    pipeline = Pipeline()
    pipeline.add(same, name="a", after=pipeline.source("in"))
    pipeline.add(same, name="b", after="a", chain=True)
    pipeline.add(same, name="c", after="b", chain=True)
    pipeline.add(same, name="d", after="a")
    chains = Chains.planned(pipeline.topology())
    assert groups(chains) == [("a", "b", "c"), ("d",)]
    processed = {"a": 100, "b": 95, "c": 90, "d": 80}
    declared = {name: stats_of(100, events, events, 1.0) for name, events in processed.items()}
    stats = IntervalStats(0, 1.0, {}, fold_operators(chains, declared), {})
    assert events_out(chains.topology, stats) == 90 + 80
