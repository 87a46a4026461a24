"""The state that a journal leads to, without a broker: the same records, the same state."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.engines.spark.backends.kafka.commands import apply
from elastream.engines.spark.backends.kafka.snapshot import from_snapshot, to_snapshot
from elastream.engines.spark.backends.kafka.state import State
from elastream.engines.spark.backends.kafka.versions import NEWEST
from elastream.engines.spark.backends.parcels import Unit
from elastream.errors import InvalidInputError

MEMBERS = st.sampled_from([["a", 0], ["b", 0], ["b", 1]])
PROCESSES = st.sampled_from(["1:x", "2:y", "3:z"])
LANES = st.integers(0, 2)
BLOBS = st.tuples(st.just("t"), st.integers(0, 1), st.integers(0, 50))
NUMBERS = st.integers(1, 30)


def does(what, /, **arguments):
    return st.fixed_dictionaries({"do": st.just(what), **arguments})


COUNTS = st.fixed_dictionaries({"numbers": st.just([1, 1, 0, 0.5, 0.5]), "sent": st.just({"b": 1})})
PARTS = st.lists(st.tuples(LANES, st.integers(1, 5)), min_size=1, max_size=2)
RESULTS = st.lists(st.tuples(st.just("b"), BLOBS, PARTS, st.booleans()), max_size=2)
COMMANDS = st.one_of(
    does("join", name=MEMBERS, process=PROCESSES, generation=NUMBERS, sequence=st.just(0)),
    does(
        "hold",
        name=MEMBERS,
        process=PROCESSES,
        wanted=st.lists(LANES),
        held=st.just({}),
        by_force=st.lists(LANES, max_size=2) | st.booleans(),
    ),
    does(
        "commit",
        name=MEMBERS,
        process=PROCESSES,
        sequence=NUMBERS,
        places=st.lists(st.tuples(LANES, NUMBERS, st.integers(1, 2), NUMBERS), max_size=1),
        results=RESULTS,
        dead=st.just([]) | st.just([["b", ["d", 0, 3], 1, "ValueError", 0, 1.0]]),
        counts=COUNTS,
    ),
    does(
        "take_shared",
        name=MEMBERS,
        process=PROCESSES,
        most=NUMBERS,
        working=st.lists(NUMBERS, max_size=2),
    ),
    does(
        "lay_out",
        operator=st.just("b"),
        layout=st.sampled_from([[3, None, False], [3, None, True]]),
        waiting=st.just([]),
    ),
    does("publish", plan=st.just("{}")),
    does("new_generation", roles=st.lists(MEMBERS, max_size=2)),
    does("take_role", generation=st.just(1), worker=st.integers(0, 2)),
    does("start", generation=st.just(1)),
    does("abandon", generation=st.integers(1, 2)),
    does("reassign", name=MEMBERS, to=MEMBERS),
    does("vacate", names=st.lists(MEMBERS, max_size=2)),
    does("report_deaths", dead=st.lists(st.tuples(MEMBERS, PROCESSES), max_size=2)),
    does("dismiss", names=st.none() | st.lists(MEMBERS, max_size=2)),
    does("beat", name=MEMBERS, busy_for=st.just(0.5)),
    does("report_failure", generation=st.integers(0, 2), name=MEMBERS, error=st.just("no")),
    does(
        "post",
        name=MEMBERS,
        producers=st.none() | st.lists(MEMBERS, max_size=2),
        kind=st.just("SyncReply"),
        content=st.just("{}"),
    ),
    does("retry", numbers=st.just([1, 2]), lanes=st.just([0, 1]), time=st.just(2.0)),
    does("stage", source=st.just("a"), name=st.just("t1"), events=st.just(3), blob=BLOBS),
    does(
        "admit",
        source=st.just("a"),
        number=NUMBERS,
        staged=st.sampled_from([{}, {"t1": 3}]),
        time=st.just(1.0),
    ),
    does("consume", operator=st.just("b"), upto=NUMBERS),
    does("clear", operator=st.just("b")),
    does("trim", upto=st.lists(st.tuples(st.just("t"), st.integers(0, 1), NUMBERS), max_size=1)),
    does("own", process=PROCESSES, who=st.just("me"), instead_of=st.none()),
    does("renew", process=PROCESSES),
)


def replay(state, commands):
    return [apply(state, json.loads(json.dumps(command))) for command in commands]


@given(before=st.lists(COMMANDS, max_size=25), after=st.lists(COMMANDS, max_size=15))
def test_whoever_begins_with_a_snapshot_comes_to_the_same(before, after):
    first = State()
    replay(first, before)
    second = from_snapshot(to_snapshot(first))
    assert to_snapshot(second) == to_snapshot(first)
    assert replay(second, after) == replay(first, after)
    assert to_snapshot(second) == to_snapshot(first)


@given(commands=st.lists(COMMANDS, max_size=40))
def test_lanes_hold_what_arrived_and_was_not_consumed(commands):
    state = State()
    replay(state, commands)
    for lanes in state.lanes.values():
        for lane in lanes.values():
            left = [entry.events for entry in lane.entries.values()]
            assert lane.waiting == sum(left)
            assert all(events > 0 for events in left)
            assert lane.waiting <= lane.arrived
            assert list(lane.entries) == sorted(lane.entries)


@given(commands=st.lists(COMMANDS, max_size=40))
def test_what_is_needed_is_never_deleted(commands):
    state = State()
    for command in commands:
        replay(state, [command])
        for (topic, partition), below in state.unneeded().items():
            for lanes in state.lanes.values():
                for lane in lanes.values():
                    for entry in lane.entries.values():
                        if entry.blob[:2] == (topic, partition):
                            assert entry.blob.offset >= below


def shared_lane(events=3):
    """A state in which events wait in the shared lane, and a member that has joined."""
    state = State()
    replay(
        state,
        [
            {"do": "lay_out", "operator": "b", "layout": [1, None, True], "waiting": []},
            joining("a", "1:x"),
            joining("b", "2:y"),
            {
                "do": "commit",
                "name": ["a", 0],
                "process": "1:x",
                "sequence": 1,
                "places": [],
                "results": [["b", ["t", 0, 0], [[-1, events]], False]],
                "dead": [],
                "counts": {"numbers": [0, 0, 0, 0.0, 0.0]},
            },
        ],
    )
    return state


def joining(operator, process):
    return {
        "do": "join",
        "name": [operator, 0],
        "process": process,
        "generation": 1,
        "sequence": 0,
    }


def test_what_was_taken_and_never_learnt_of_is_taken_again():
    state = shared_lane()
    take = {"do": "take_shared", "name": ["b", 0], "process": "2:y", "most": 9, "working": []}
    ((parts, _),) = replay(state, [take])
    assert replay(state, [take]) == [(parts, False)]
    assert replay(state, [{**take, "working": [number for number, _ in parts]}]) == [([], False)]


def test_a_member_whose_wish_to_join_came_twice_has_not_died():
    state = shared_lane()
    take = {"do": "take_shared", "name": ["b", 0], "process": "2:y", "most": 9, "working": []}
    replay(state, [take, joining("b", "2:y")])
    assert [entry.deaths for entry in state.lane("b", -1).entries.values()] == [0]
    replay(state, [take, joining("b", "3:z")])
    assert [entry.deaths for entry in state.lane("b", -1).entries.values()] == [1]


# Versions: one of each is kept here.

VERSION_1 = {
    "journal": [
        {"do": "claim", "pipeline": "p"},
        {"do": "lay_out", "operator": "b", "layout": [4, None, False], "waiting": []},
        joining("b", "2:y"),
        {
            "do": "commit",
            "name": ["b", 0],
            "process": "2:y",
            "sequence": 1,
            "places": [],
            "results": [["b", ["t", 0, 0], [[2, 5]], False]],
            "dead": [["b", ["t", 0, 1], 1, "ValueError", 3, 1.0]],
            "counts": {"numbers": [7, 6, 0, 0.5, 0.1]},
        },
    ],
    "snapshot": {
        "pipeline": "p",
        "layout": {"b": [4, None, False, None]},
        "lanes": [
            ["b", 0, None, 1, 0, []],
            ["b", 1, None, 1, 0, []],
            ["b", 2, None, 1, 5, [[1, ["t", 0, 0], 5, 0, None, None, 0, None, None]]],
            ["b", 3, None, 1, 0, []],
        ],
        "members": [[["b", 0], ["2:y", 1, 0, 0.0, 1]]],
        "failures": [],
        "plan": [None, 0],
        "generations": [0, 0],
        "roles": [],
        "feedback": [],
        "tallies": [[["b", 0], [7, 6, 0, 0.5, 0.1, 0.0, 0], {}, {}, []]],
        "letters": [[2, ["b", 1, "ValueError", 3, 1.0, ["t", 0, 1]]]],
        "staged": {},
        "admitted": {},
        "consumed": {},
        "trimmed": [],
        "stored": [],
        "driver": None,
        "numbers": 2,
    },
}


VERSION_2 = {
    "journal": [{"version": 2, **command} for command in VERSION_1["journal"]],
    "snapshot": {
        **{name: of for name, of in VERSION_1["snapshot"].items() if name != "tallies"},
        "version": 2,
        "counts": [[["b", 0], [7, 6, 0, 0.5, 0.1, 0.0, 0, 0, 0.0], {}, {}, []]],
        "stored": [["t", 0, 2]],
    },
}
VERSION_3 = {
    "journal": [{**command, "version": 3} for command in VERSION_2["journal"]],
    "snapshot": {**VERSION_2["snapshot"], "version": 3},
}
VERSION_4 = {
    "journal": [
        {**command, "version": 4}
        | ({"counts": json.dumps(command["counts"])} if "counts" in command else {})
        for command in VERSION_3["journal"]
    ],
    "snapshot": {**VERSION_3["snapshot"], "version": 4},
}
VERSION_5 = {
    "journal": [{**command, "version": 5} for command in VERSION_4["journal"]],
    "snapshot": {**VERSION_4["snapshot"], "version": 5, "failures": [[["b", 0], "not today"]]},
}
RETRY = {"do": "retry", "numbers": [2], "time": 2.0}
KEPT = {
    1: (VERSION_1, RETRY),
    2: (VERSION_2, RETRY | {"version": 2, "lanes": [3]}),
    3: (VERSION_3, RETRY | {"version": 3, "lanes": [3]}),
    4: (VERSION_4, RETRY | {"version": 4, "lanes": [3]}),
    5: (VERSION_5, RETRY | {"version": 5, "lanes": [3]}),
}


def test_one_of_every_version_is_kept():
    assert set(KEPT) == set(range(1, NEWEST))


@pytest.mark.parametrize("version", KEPT)
@pytest.mark.parametrize("begin", ["journal", "snapshot"])
def test_what_an_earlier_version_wrote_is_understood(version, begin):
    written, retry = KEPT[version]
    if begin == "snapshot":
        state = from_snapshot(json.dumps(written["snapshot"]).encode())
    else:
        state = State()
        replay(state, written["journal"])
    assert replay(state, [retry]) == [1]
    assert {lane: of.waiting for lane, of in state.lanes["b"].items()} == {0: 0, 1: 0, 2: 5, 3: 1}
    assert state.counts_of(("b", 0)).numbers[0] == 7
    assert json.loads(to_snapshot(state))["version"] == NEWEST


@pytest.mark.parametrize(("version", "chain"), [(4, []), (5, ["b"]), (5, [None])])
def test_what_is_restored_is_chained_as_it_was_if_that_was_written(version, chain):
    state = State()
    begin = {"do": "begin_restore", "version": version, "layout": {"c": [1, None, False, *chain]}}
    assert replay(state, [begin]) == [True]
    assert state.layout["c"].chained_to == (chain[0] if chain else None)


@pytest.mark.parametrize(("version", "unit"), [(4, []), (5, [None]), (5, [["6f1c", 2, 3, 1, 7]])])
def test_what_is_moved_keeps_the_name_of_its_unit_if_that_was_written(version, unit):
    state = State()
    moved = [1, ["t", 0, 0], 5, 2, None, None, 0, *unit]
    lay_out = {"do": "lay_out", "operator": "b", "layout": [4, None, False], "waiting": [moved]}
    replay(state, [{**lay_out, "version": version}])
    restored = from_snapshot(to_snapshot(state))
    for each in (state, restored):
        (entry,) = each.lane("b", 1).entries.values()
        assert entry.named == (Unit("6f1c", 2, 3, 1, 7) if unit and unit[0] else None)


def test_a_failure_of_which_generation_was_not_said_is_of_the_one_that_runs():
    state = State()
    report = {"do": "report_failure", "version": 5, "name": ["b", 0], "error": "not today"}
    replay(state, [{"do": "start", "generation": 2}, report])
    assert state.failures == {2: {("b", 0): "not today"}}


@pytest.mark.parametrize("version", [NEWEST + 1, 0])
def test_what_a_later_version_wrote_is_refused(version):
    problem = f"has version {version}, and this elastream knows versions 1 to {NEWEST}: use the el"
    with pytest.raises(InvalidInputError, match=problem):
        apply(State(), {"version": version, "do": "something new"})
    with pytest.raises(InvalidInputError, match=problem):
        from_snapshot(json.dumps({"version": version}).encode())
