import pytest

from elastream.control import ControlLoop, Outcome
from elastream.engines.base import Engine
from elastream.errors import EngineError, InvalidInputError
from elastream.policies import POLICIES
from elastream.policies.bgelasor import Spea
from elastream.policies.guards import Pause
from elastream.policies.pa_sps import PaSps
from elastream.predictors import PREDICTORS
from elastream.predictors.base import Predictor
from support.engines import PlaybackEngine
from support.pipelines import interval, line

LINE = line("clean", "store")


def run(script, policy=None, predictor="basic", cycles=None, apply_errors=(), **settings):
    engine = PlaybackEngine(LINE, script, apply_errors)
    model = PREDICTORS[predictor]() if isinstance(predictor, str) else predictor
    loop = ControlLoop(engine, policy or PaSps(), model, **settings)
    return engine, list(loop.run(cycles or len(script)))


def steady(*events, active=1):
    return [interval(LINE, n, number=i, active=active) for i, n in enumerate(events)]


def test_the_playback_engine_is_an_engine():
    assert isinstance(PlaybackEngine(LINE, []), Engine)


def test_every_cycle_measures_expects_plans_and_changes():
    engine, (cycle,) = run(steady(9000))
    assert cycle.outcome is Outcome.CHANGED
    assert cycle.time == 30
    assert cycle.forecast.values.tolist() == [9000]
    assert dict(engine.plans[0].replicas) == {"clean": 3, "store": 3}
    assert next(str(change) for change in cycle.changes) == (
        "clean 1 -> 3: 300 events/s expected (basic), 10 ms each"
    )


def test_a_plan_that_changes_nothing_is_not_applied():
    engine, (cycle,) = run(steady(9000, active=3))
    assert cycle.outcome is Outcome.UNCHANGED
    assert engine.plans == []


def test_cycles_are_td_apart_on_the_engines_clock():
    _, cycles = run(steady(10, 10, 10), td=5.0)
    assert [cycle.time for cycle in cycles] == [5, 10, 15]


def test_cycles_that_are_late_do_not_shift_those_that_follow():
    engine = PlaybackEngine(LINE, steady(10, 10, 10))
    loop = ControlLoop(engine, PaSps(), PREDICTORS["basic"](), td=5.0)
    loop.cycle()
    engine.clock.time = 10.2
    assert [loop.cycle().time, loop.cycle().time] == [10.2, 15]


def test_a_late_cycle_is_not_made_up_for():
    engine = PlaybackEngine(LINE, steady(10, 10))
    loop = ControlLoop(engine, PaSps(), PREDICTORS["basic"](), td=5.0)
    engine.clock.time = 12.0
    assert loop.cycle().time == 12
    assert loop.cycle().time == 15


def test_the_forecast_looks_at_samples_and_adds_them_up():
    script = steady(3000, 6000, 9000)
    _, cycles = run(script, predictor="lr")
    # Three samples an interval: 1000, 1000, 1000, 2000, ... on a line through all of them.
    assert cycles[-1].forecast.values[0] == pytest.approx(12_000, rel=0.1)
    assert cycles[-1].forecast.model == "lr"


def test_the_predictor_sees_no_more_than_it_may_look_back():
    _, cycles = run(steady(90_000, 90_000, 3000), predictor="lr", look_back=3)
    assert cycles[-1].forecast.values[0] == pytest.approx(3000)


def test_a_cycle_without_enough_data_is_skipped_and_says_so():
    _engine, cycles = run(steady(9000, 9000), policy=Spea())
    assert cycles[0].outcome is Outcome.SKIPPED
    assert "needs 2 samples" in cycles[0].note
    assert cycles[1].outcome is Outcome.CHANGED


class Broken(Predictor):
    name = "broken"

    def predict(self, history, horizon):
        raise RuntimeError("no model today")

    def _extrapolate(self, history, horizon):
        raise NotImplementedError


def test_a_failing_predictor_is_replaced_and_recorded():
    _engine, (cycle,) = run(steady(9000), predictor=Broken())
    assert cycle.outcome is Outcome.CHANGED
    assert cycle.note == "broken failed: no model today"
    assert cycle.forecast.model == "basic"


def test_a_failing_engine_call_is_recorded_and_the_next_cycle_goes_on():
    _engine, cycles = run([RuntimeError("lost"), *steady(9000)])
    assert [cycle.outcome for cycle in cycles] == [Outcome.FAILED, Outcome.CHANGED]
    assert cycles[0].note == "RuntimeError: lost"


def test_a_plan_that_could_not_be_applied_is_tried_again():
    engine, cycles = run(steady(9000, 9000), apply_errors=[OSError("busy")])
    assert [cycle.outcome for cycle in cycles] == [Outcome.FAILED, Outcome.CHANGED]
    assert len(engine.plans) == 1


def test_advice_only_says_what_it_would_do_and_does_nothing():
    engine, (cycle,) = run(steady(9000), advice_only=True)
    assert cycle.outcome is Outcome.ADVISED
    assert len(cycle.changes) == 2
    assert engine.plans == []


def test_what_was_proposed_and_what_was_allowed_are_two_things():
    _engine, (cycle,) = run(steady(9000), guards=[Pause()])
    assert cycle.proposal.replicas["clean"] == 3
    assert cycle.plan.replicas["clean"] == 1
    assert cycle.outcome is Outcome.UNCHANGED


def test_a_recorder_that_fails_does_not_stop_the_loop(caplog):
    def full_disk(cycle):
        raise OSError("no space left")

    _, (cycle,) = run(steady(9000), record=full_disk)
    assert cycle.outcome is Outcome.CHANGED
    assert "could not be recorded" in caplog.text


def test_an_engine_that_cannot_go_on_ends_the_loop():
    with pytest.raises(EngineError, match="no events any more"):
        run([*steady(10), EngineError("no events any more")])


def test_an_interrupt_ends_the_interval_and_the_loop():
    engine = PlaybackEngine(LINE, steady(10, 9000, 10))
    loop = ControlLoop(engine, PaSps(), PREDICTORS["basic"](), td=5.0)
    cycles = loop.run(3)
    next(cycles)
    engine.clock.sleep_until = lambda moment: (setattr(engine.clock, "time", 7.0), loop.interrupt())
    (last,) = cycles
    assert (last.time, last.outcome, last.note) == (7.0, Outcome.SKIPPED, "the run ends")
    assert engine.plans == []


@pytest.mark.parametrize("setting", [{"td": 0}, {"td": float("nan")}, {"look_back": 1}])
def test_settings_are_checked_by_name(setting):
    with pytest.raises(InvalidInputError, match=next(iter(setting))):
        run([], **setting)


def test_every_policy_is_in_the_catalogue():
    assert len(POLICIES) == 14
