"""The handle of a run, over the simulator at a pace: no Spark, no waiting."""

import signal
import threading
import time
from dataclasses import replace

import pytest

import elastream
from elastream import Pipeline
from elastream.control import ControlLoop
from elastream.control.history import History
from elastream.core.behaviour import Behaviour
from elastream.engines.simulation import PacedClock, SimulationEngine, SimulationSettings
from elastream.errors import EngineError, InvalidInputError, RunOverError
from elastream.policies import POLICIES
from elastream.predictors import PREDICTORS
from elastream.running.choices import steering_choices
from elastream.running.handle import Ending, PipelineRun, Surroundings
from elastream.running.interrupts import INTERRUPTS
from elastream.running.status import Counted
from elastream.workloads import TRACES
from support.waiting import eventually

PATIENCE = 120.0


class Drained(SimulationEngine):
    """Drains when somebody lets it."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.empty = threading.Event()
        self.drains = 0

    def drain(self, seconds):
        self.drains += 1
        return self.empty.wait(min(seconds, 0.02))


def press_ctrl_c():
    """The signal that the terminal sends."""
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def once(condition, act):
    """Do something in another thread, as soon as it is time."""
    threading.Thread(target=lambda: eventually(condition) and act(), daemon=True).start()


def main_thread_waits():
    return INTERRUPTS._waiting


@pytest.fixture
def start(tmp_path):
    runs = []

    def make(speed=200.0, said=None, **ending):
        pipeline = Pipeline("orders")
        orders = pipeline.source("orders")
        pipeline.add(len, name="price", after=orders, pool=8, execution_time=0.0013)
        engine = Drained(
            pipeline.topology(),
            TRACES["spiky"](),
            Behaviour(),
            SimulationSettings(),
            PacedClock(speed),
        )
        history = History(tmp_path / "history.db")
        models = {name: PREDICTORS[name]() for name in ("basic", "lr")}
        policy = POLICIES["pa-sps"]()
        loop = ControlLoop(
            engine,
            policy,
            models["lr"],
            td=10.0,
            choices=steering_choices(policy, models),
            record=history.record,
        )
        say = [].append if said is None else said.append
        around = Surroundings(state="somewhere", history=history.path, say=say)
        around.close.callback(history.close)
        run = PipelineRun(engine, loop, Ending(**ending), around)
        runs.append((run, engine))
        return run, engine

    yield make
    for run, engine in runs:
        engine.empty.set()
        run.stop()


def test_a_run_ends_in_time_also_within_an_interval(start):
    run, engine = start(until=25.0)
    engine.empty.set()
    seen = [cycle.time for cycle in run.follow()]
    assert seen == pytest.approx([10.0, 20.0, 25.0], abs=2.0)


def test_a_run_ends_with_its_trace_and_says_what_it_did(start):
    run, engine = start(until=100.0)
    engine.empty.set()
    seen = [cycle.time for cycle in run.follow()]
    assert run.await_termination(PATIENCE)
    assert seen == pytest.approx([10.0 * number for number in range(1, 11)], abs=1.0)
    status = run.status()
    assert not status.active
    assert status.events_in == pytest.approx(status.events_out + sum(status.waiting.values()))
    assert str(status).startswith("orders: ended, 1")
    assert run.exception is None
    assert [row["time"] for row in run.history(2)] == pytest.approx(seen[-2:])
    assert [cycle.time for cycle in run.recent(3)] == seen[-3:]
    assert run.plan().replicas.keys() == {"price"}


def test_a_run_is_steered_while_it_runs(start):
    run, _ = start()
    assert run.is_active
    settings = run.set(policy="presps", td=5.0, replicas={"price": 3}, limits={"price": (2, 6)})
    assert (settings.policy, settings.td, settings.by_hand) == ("presps", 5.0, {"price": 3})
    assert run.set(replicas={"price": None}, limits={"price": None}).limits == {}
    with pytest.raises(InvalidInputError, match="pa-sps"):
        run.set(policy="pa-spz")
    run.stop()
    with pytest.raises(RunOverError):
        run.set(paused=True)


def test_a_run_can_be_switched_to_objects(start):
    run, _ = start()
    assert run.set(policy=elastream.slo("250 ms"), td=5.0).policy == "slo"
    assert run.loop.steering.course.policy == elastream.slo("250 ms")
    run.set(policy=elastream.slo("100 ms"))
    assert run.loop.steering.course.policy == elastream.slo("100 ms")
    own = elastream.predictor("fft", frequencies=5)
    assert run.set(predictor=own).predictor == "fft"
    run.set(td=6.0)
    assert run.loop.steering.course.predictor is own
    with pytest.raises(InvalidInputError, match=r"policy: 3: give a name, or an object"):
        run.set(policy=3)


def test_draining_lets_what_is_inside_through_and_stopping_does_not(start):
    said = []
    run, engine = start(said=said)
    once(lambda: engine.drains > 1, engine.empty.set)
    assert run.drain(PATIENCE)
    assert engine.drains > 1
    assert said == ["draining; Ctrl-C again stops at once"]
    other, engine = start()
    other.stop()
    assert engine.drains == 0


def test_a_drain_that_takes_too_long_is_given_up_and_said(start):
    said = []
    run, _ = start(said=said, drain_seconds=0.1)
    assert run.drain(PATIENCE)
    assert said[-1] == "some events still wait; they stay in the state"


def fails_in_the_drain(run, engine, failed, monkeypatch):
    """After the drain, the engine reports what `failed` says, and besides what it once measured."""
    earlier, observe = next(run.follow()).stats, engine.observe
    price = replace(earlier.operators["price"], **failed(earlier.operators["price"]))
    last = replace(earlier, operators={"price": price})
    monkeypatch.setattr(engine, "observe", lambda: last if engine.drains else observe())
    engine.empty.set()


IN_DRAIN = {"set_aside": 5.0, "errors": {"ValueError: no price of 7": 5.0}}


def test_events_that_fail_in_the_drain_count_towards_the_limit(start, monkeypatch):
    run, engine = start(most_set_aside=5)
    fails_in_the_drain(run, engine, lambda _: IN_DRAIN, monkeypatch)
    with pytest.raises(EngineError) as raised:
        run.drain(10)
    assert str(raised.value) == (
        "5 events were set aside, most by 'price' (ValueError: no price of #), and 5 is the limit: "
        "see 'elastream dead-letters somewhere'"
    )
    assert run.status().set_aside == {"price": 5.0}


def test_below_the_limit_they_are_the_last_thing_said(start, monkeypatch):
    said = []
    run, engine = start(said=said, most_set_aside=6)
    fails_in_the_drain(run, engine, lambda _: IN_DRAIN, monkeypatch)
    assert run.drain(10)
    assert said == [
        "draining; Ctrl-C again stops at once",
        "5 events were set aside, most by 'price' (ValueError: no price of #): "
        "see 'elastream dead-letters somewhere'",
    ]


def test_a_function_that_failed_on_every_event_is_found_also_inside_a_chain(start):
    run, _ = start()
    stats = next(run.follow()).stats
    price = stats.operators["price"]
    worked, failed = replace(price, processed=5.0), replace(price, processed=0.0, set_aside=5.0)
    chain = replace(worked, set_aside=5.0, inside={"price": worked, "rate": failed})
    counted = Counted().after(run.topology, replace(stats, operators={"price": chain}))
    assert counted.useless == ["rate"]
    later = replace(chain, inside={"price": worked, "rate": replace(failed, processed=1.0)})
    assert not counted.after(run.topology, replace(stats, operators={"price": later})).useless


def test_the_operator_that_failed_is_named_also_inside_a_chain(start, monkeypatch):
    run, engine = start(most_set_aside=1)

    def failed(price):
        return {"set_aside": 5.0, "inside": {"rate": replace(price, **IN_DRAIN)}}

    fails_in_the_drain(run, engine, failed, monkeypatch)
    with pytest.raises(EngineError, match=r"most by 'rate' \(ValueError: no price of #\)"):
        run.drain(10)


def test_an_engine_that_fails_ends_the_run_with_its_error(start, monkeypatch):
    run, engine = start()

    def broken():
        raise EngineError("the operator 'price' failed: ValueError: no number; its events wait")

    monkeypatch.setattr(engine, "observe", broken)
    with pytest.raises(EngineError, match="'price' failed: ValueError"):
        run.await_termination(PATIENCE)
    assert "'price'" in str(run.exception)
    assert "failed" in str(run.status())


def test_an_engine_that_cannot_be_closed_does_not_keep_the_rest_open(start, monkeypatch):
    run, engine = start()
    closed = threading.Event()
    run._around.close.callback(closed.set)

    def broken():
        raise OSError("the cluster is gone")

    monkeypatch.setattr(engine, "close", broken)
    run.stop()
    assert closed.is_set()
    assert "could not be closed: OSError: the cluster is gone" in str(run.exception)


def test_whoever_stops_following_is_told_no_more(start):
    run, _ = start()
    cycles = run.follow()
    next(cycles)
    assert run._followers
    cycles.close()
    assert not run._followers


def test_waiting_can_be_cut_short(start):
    run, _ = start(speed=1.0)
    assert not run.await_termination(0.05)
    assert run.is_active


def test_as_a_context_manager_it_drains_or_stops(start):
    run, engine = start()
    engine.empty.set()
    with run:
        pass
    assert not run.is_active
    assert engine.drains
    other, engine = start()
    with pytest.raises(ZeroDivisionError), other:
        raise ZeroDivisionError
    assert not other.is_active
    assert not engine.drains


def test_it_shows_itself_in_a_notebook(start):
    run, engine = start(until=60.0)
    engine.empty.set()
    run.await_termination(PATIENCE)
    shown = run._repr_html_()
    assert "<td>price</td>" in shown
    assert "polyline" in shown
    assert "orders: ended" in repr(run)


def test_the_first_interrupt_drains_and_the_second_stops_at_once(start):
    said = []
    run, engine = start(said=said)
    before = signal.getsignal(signal.SIGINT)

    once(main_thread_waits, press_ctrl_c)
    once(lambda: said, press_ctrl_c)
    assert run.await_termination(PATIENCE)
    assert said == [
        "draining; Ctrl-C again stops at once",
        "stopped; waiting events stay in the state",
    ]
    assert not engine.empty.is_set()
    assert signal.getsignal(signal.SIGINT) == before


def test_a_program_that_does_not_wait_hears_of_the_interrupt_when_its_runs_have_ended(start):
    run, engine = start()
    once(lambda: engine.drains > 5, engine.empty.set)

    def program():
        press_ctrl_c()
        time.sleep(PATIENCE)

    with pytest.raises(KeyboardInterrupt):
        program()
    assert engine.empty.is_set(), "not before"
    assert not run.is_active


def test_several_runs_end_on_one_interrupt(start):
    (first, early), (last, late) = start(), start()
    early.empty.set()
    once(lambda: not first.is_active, late.empty.set)
    once(main_thread_waits, press_ctrl_c)
    assert last.await_termination(PATIENCE)
    assert first.await_termination(PATIENCE)
