from dataclasses import replace

import numpy as np
import pytest

from elastream.control import Choices, ControlLoop, Limits, Outcome
from elastream.control.history import History
from elastream.control.history_reader import HistoryReader
from elastream.engines.simulation import SimulationEngine
from elastream.errors import InvalidSettingError, MissingExtraError, RunOverError, UnknownNameError
from elastream.policies import POLICIES
from elastream.predictors import PREDICTORS
from elastream.workloads.traces import evenly
from support.engines import PlaybackEngine
from support.pipelines import interval, line

LINE = line("clean", "store", execution_time=0.01)
MADE_FOR = []


def made_for(td):
    MADE_FOR.append(td)
    return PREDICTORS["lr"]()


def not_installed(td):
    raise MissingExtraError("the model 'svr'", "learned")


CHOICES = Choices(
    policies={"pa-sps": POLICIES["pa-sps"], "presps": POLICIES["presps"]},
    predictors={"lr": made_for, "svr": not_installed},
    shortest_td=1.0,
)


@pytest.fixture
def entries():
    return []


@pytest.fixture
def loop(entries):
    """300 events a second: three replicas of each operator."""
    engine = SimulationEngine(LINE, evenly(np.full(3_600, 300.0)))
    return ControlLoop(
        engine,
        POLICIES["pa-sps"](),
        PREDICTORS["basic"](),
        td=10.0,
        choices=CHOICES,
        record=entries.append,
    )


def active(cycle):
    return {name: of.active for name, of in cycle.stats.operators.items()}


def planned(cycle):
    return dict(cycle.plan.replicas)


def test_a_policy_switch_takes_effect_in_the_next_cycle(loop):
    loop.cycle()
    loop.steering.change("anna", {"policy": "presps", "predictor": "lr"})
    cycle = loop.cycle()
    assert cycle.forecast is None
    assert loop.steering.settings.policy == "presps"


def test_a_predictor_is_made_for_the_length_of_the_interval(loop):
    MADE_FOR.clear()
    loop.steering.change("anna", {"predictor": "lr", "td": 20.0})
    loop.steering.change("anna", {"td": 5.0})
    assert MADE_FOR == [20.0, 5.0]
    assert loop.cycle().forecast.model == "lr"


@pytest.mark.parametrize(("td", "then"), [(None, 30.0), (10.0, 10.0)])
def test_what_a_switch_would_lead_to_has_the_interval_that_it_would_have(td, then):
    engine = SimulationEngine(LINE, evenly(np.full(60, 300.0)))
    any_td = replace(CHOICES, shortest_td=0.0)
    loop = ControlLoop(engine, POLICIES["slo"](), PREDICTORS["basic"](), td=td, choices=any_td)
    before = loop.steering.settings
    course = loop.steering.chosen("pa-sps", "lr")
    assert (course.settings.policy, course.settings.td, MADE_FOR[-1]) == ("pa-sps", then, then)
    assert loop.steering.settings == before
    loop.steering.change("ann", {"policy": "pa-sps", "predictor": "lr"})
    assert loop.steering.settings.td == then


def test_one_that_is_no_choice_stays_when_only_td_changes(loop):
    loop.steering.change("anna", {"td": 5.0})
    assert loop.cycle().time == 5
    assert loop.cycle().forecast.model == "basic"


def test_td_changes_the_interval_that_runs(loop):
    loop.cycle()
    loop.steering.change("anna", {"td": 3.0})
    assert [loop.cycle().time for _ in range(2)] == [12, 15]


def test_a_pause_holds_all_but_what_people_set(loop):
    loop.steering.change("anna", {"paused": True})
    cycle = loop.cycle()
    assert (cycle.outcome, cycle.note) == (Outcome.UNCHANGED, "paused")
    loop.steering.set_replicas("anna", "store", 5)
    assert active(loop.cycle()) == {"clean": 1, "store": 5}
    loop.steering.change("anna", {"paused": False})
    assert loop.cycle().outcome is Outcome.CHANGED


def test_advice_changes_nothing(loop):
    loop.steering.change("anna", {"advice_only": True})
    assert loop.cycle().outcome is Outcome.ADVISED
    assert active(loop.cycle()) == {"clean": 1, "store": 1}


def test_limits_bound_the_policy_until_they_are_released(loop):
    loop.steering.limit("anna", "clean", Limits(7, 8))
    loop.steering.limit("anna", "store", Limits(1, 2))
    cycle = loop.cycle()
    assert planned(cycle) == {"clean": 7, "store": 2}
    assert str(cycle.changes[0].reasons[-1]) == "5 wanted, and 7 is the bound"
    loop.steering.release_limits("anna", "clean")
    loop.steering.release_limits("anna", "store")
    cycle = loop.cycle()
    assert planned(cycle)["clean"] < 7
    assert planned(cycle)["store"] > 2


def test_replicas_by_hand_come_at_once_and_stay_until_released(loop):
    loop.cycle()
    loop.steering.set_replicas("anna", "store", 7)
    for _ in range(2):
        cycle = loop.cycle()
        # Active in all of the interval that had begun, whatever the policy says at its end.
        assert active(cycle)["store"] == 7
        assert planned(cycle)["store"] == 7
        assert cycle.proposal.replicas["store"] < 7
    loop.steering.release_replicas("anna", "store")
    assert planned(loop.cycle())["store"] < 7


def test_what_cannot_be_applied_by_hand_is_logged_and_planned_again(caplog):
    script = [interval(LINE, 100, number=i) for i in range(2)]
    engine = PlaybackEngine(LINE, script, apply_errors=[OSError("busy")])
    loop = ControlLoop(engine, POLICIES["pa-sps"](), PREDICTORS["basic"]())
    loop.steering.set_replicas("anna", "store", 4)
    assert loop.cycle().outcome is Outcome.CHANGED
    assert "could not be applied" in caplog.text
    assert engine.plans[0].replicas["store"] == 4


def test_a_stop_ends_the_run_and_then_nothing_can_be_changed(loop):
    cycles = loop.run()
    next(cycles)
    loop.steering.stop("anna")
    assert list(cycles) == []
    with pytest.raises(RunOverError, match="the run is over"):
        loop.steering.change("anna", {"td": 5.0})
    assert loop.steering.settings.stopping


def test_a_run_ends_with_the_time_it_was_given(loop):
    loop.steering.change("anna", {"td": 4.0})
    assert [cycle.time for cycle in loop.run(until=10.0)] == [4, 8, 10]


def test_a_short_rest_of_a_run_belongs_to_its_last_interval(loop):
    loop.steering.change("anna", {"td": 4.0})
    assert [cycle.time for cycle in loop.run(until=9.0)] == [4, 9]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("policy", lambda s: s.change("anna", {"policy": "magic"})),
        ("predictor", lambda s: s.change("anna", {"predictor": "magic", "paused": True})),
        ("predictor", lambda s: s.change("anna", {"predictor": "svr"})),
        ("td", lambda s: s.change("anna", {"td": 0.5, "policy": "presps"})),
        ("td", lambda s: s.change("anna", {"td": float("inf")})),
        ("minimum", lambda s: s.limit("anna", "store", Limits(0, 3))),
        ("maximum", lambda s: s.limit("anna", "store", Limits(3, 2))),
        ("maximum", lambda s: s.limit("anna", "store", Limits(3, 9))),
        ("replicas", lambda s: s.set_replicas("anna", "store", 9)),
        ("replicas", lambda s: s.set_replicas("anna", "store", 0)),
    ],
)
def test_a_bad_value_names_its_field_and_changes_nothing(loop, entries, field, change):
    before = loop.steering.course
    with pytest.raises(InvalidSettingError) as refused:
        change(loop.steering)
    assert refused.value.field == field
    assert loop.steering.course is before
    assert entries == []


def test_an_operator_that_is_not_there_is_named(loop):
    with pytest.raises(UnknownNameError, match="did you mean 'store'"):
        loop.steering.set_replicas("anna", "stor", 2)


def test_every_change_is_recorded_with_who_and_when(loop, entries):
    loop.cycle()
    entries.clear()
    loop.steering.change("anna", {"policy": "presps", "td": 5.0})
    loop.steering.change("bert", {"paused": True})
    loop.steering.change("bert", {"paused": True})
    loop.steering.limit("bert", "store", Limits(2, 3))
    loop.steering.set_replicas("bert", "store", 2)
    loop.steering.release_replicas("bert", "store")
    loop.steering.stop("anna", drain=False)
    assert [(entry.who, entry.what) for entry in entries] == [
        ("anna", "policy: pa-sps -> presps; td: 10.0 s -> 5.0 s"),
        ("bert", "paused"),
        ("bert", "store: at least 2 and at most 3 replicas"),
        ("bert", "store: 2 replicas by hand"),
        ("bert", "store: left to the policy"),
        ("anna", "stop without draining"),
    ]
    assert all(entry.time == 10 and entry.at > 1.7e9 for entry in entries)


def test_a_history_keeps_changes_between_the_cycles(tmp_path):
    history = History(tmp_path / "run.db")
    script = [interval(LINE, 100, number=i) for i in range(2)]
    loop = ControlLoop(
        PlaybackEngine(LINE, script),
        POLICIES["pa-sps"](),
        PREDICTORS["basic"](),
        record=history.record,
    )
    loop.cycle()
    for replicas in (2, 3, 4):
        loop.steering.set_replicas("anna", "store", replicas)
    history.close()
    kept = list(HistoryReader(tmp_path / "run.db").steering())
    assert [change["what"] for change in kept] == [
        "store: 2 replicas by hand",
        "store: 3 replicas by hand",
        "store: 4 replicas by hand",
    ]
    assert {(change["who"], change["cycle"], change["time"]) for change in kept} == {
        ("anna", 1, 30.0)
    }


def test_a_full_disk_does_not_keep_people_from_steering(caplog):
    def full_disk(entry):
        raise OSError("no space left")

    engine = PlaybackEngine(LINE, [])
    loop = ControlLoop(engine, POLICIES["pa-sps"](), PREDICTORS["basic"](), record=full_disk)
    assert loop.steering.change("anna", {"paused": True}).paused
    assert "could not be recorded" in caplog.text


def test_a_stop_right_after_a_cycle_measures_nothing_and_is_no_failure(loop):
    loop.cycle()
    loop.steering.stop("anna")
    cycle = loop.cycle()
    assert (cycle.outcome, cycle.stats) == (Outcome.SKIPPED, None)
    assert cycle.note == "no time has passed since the last interval"
