"""The queries of a program that comes and goes as it likes, without Spark."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from elastream.cli import attached_run
from elastream.cli.attached_run import GONE_SECONDS, RETRY_SECONDS, AttachedRun
from elastream.engines.attached import query as queries
from elastream.engines.attached.engine import operator_name
from elastream.errors import InvalidInputError
from support.waiting import eventually


def query(number, name=None):
    return SimpleNamespace(id=number, name=name, isActive=True)


class Attached:
    """Instead of `attach`: notes what is attached, and what was stopped."""

    def __init__(self):
        self.scaled, self.stopped, self.files, self.refuses = [], [], [], None
        self.views = []

    def __call__(self, query, executors, *, history, **wishes):
        if self.refuses:
            raise InvalidInputError(self.refuses)
        self.scaled.append(query.id)
        self.files.append(history)
        self.views.append(SimpleNamespace(running=True))
        engine = SimpleNamespace(name=operator_name(query.name), view=self.views[-1])
        return SimpleNamespace(engine=engine, url=None, stop=lambda: self.stopped.append(query.id))


@pytest.fixture
def attached(monkeypatch):
    made = Attached()
    monkeypatch.setattr(attached_run, "attach", made)
    return made


@pytest.fixture
def told(monkeypatch):
    lines = []
    monkeypatch.setattr(attached_run, "report", lambda line, **facts: lines.append(line))
    return lines


@pytest.fixture
def run(attached, told):
    return AttachedRun((1, 8), None, {})


def test_the_scaler_of_a_query_that_has_gone_stops_after_a_while(run, attached):
    both = {("app", "1"): query("1"), ("app", "2"): query("2")}
    run.look(both, 0.0)
    only = {("app", "2"): both["app", "2"]}
    run.look(only, GONE_SECONDS - 1)
    assert attached.stopped == [], "it may be restarted"
    run.look(only, GONE_SECONDS)
    assert attached.stopped == ["1"]
    run.look(both, GONE_SECONDS + 1)
    assert attached.scaled == ["1", "2", "1"]


def test_a_query_that_is_restarted_soon_keeps_its_scaler(run, attached):
    for now in range(0, 10 * int(GONE_SECONDS), int(GONE_SECONDS) // 2):
        run.look({("app", "1"): query("1")} if now % int(GONE_SECONDS) else {}, float(now))
    assert (attached.scaled, attached.stopped) == (["1"], [])


def test_a_query_that_is_restarted_in_another_session_is_attached_anew(run, attached, told):
    run.look({("app", "1"): query("1", "orders")}, 0.0)
    attached.views[0].running = False
    again = query("1", "orders")
    for now in (1.0, 2.0):
        run.look({("app", "1"): again}, now)
    assert (attached.scaled, attached.stopped) == (["1", "1"], ["1"])
    assert "orders runs in another session now" in told


def test_a_query_that_ends_while_it_is_looked_for_keeps_its_scaler(run, attached):
    one = query("1")
    run.look({("app", "1"): one}, 0.0)
    attached.views[0].running = one.isActive = False
    run.look({("app", "1"): one}, 1.0)
    assert (attached.scaled, attached.stopped) == (["1"], [])


def test_the_same_query_in_a_new_application_is_attached_anew(run, attached):
    run.look({("app-1", "1"): query("1")}, 0.0)
    run.look({}, 1.0)
    assert attached.stopped == []
    run.look({("app-2", "1"): query("1")}, 2.0)
    assert (attached.scaled, attached.stopped) == (["1", "1"], ["1"])


def test_an_attempt_that_failed_is_repeated_and_told_once(run, attached, told):
    running = {("app", "1"): query("1", "orders")}
    attached.refuses = "the executors are going back"
    for now in (0.0, 1.0, RETRY_SECONDS, 2 * RETRY_SECONDS):
        run.look(running, now)
    assert told == ["orders is not scaled: the executors are going back"]
    attached.refuses = None
    run.look(running, 2 * RETRY_SECONDS + 1)
    assert attached.scaled == []
    run.look(running, 3 * RETRY_SECONDS)
    assert attached.scaled == ["1"]


def test_a_failure_to_look_is_reported_once_if_it_lasts(run, attached, told):
    def failing():
        raise RuntimeError("no JVM")

    for now in (0.0, 5.0):
        run.try_to_look(failing, now)
    assert told == [], "a session may just be starting"
    for now in (10.0, 15.0, 40.0):
        run.try_to_look(failing, now)
    failed = "queries are no longer found or scaled: RuntimeError: no JVM"
    assert told == [failed]
    run.try_to_look(lambda: {("app", "1"): query("1")}, 41.0)
    assert attached.scaled == ["1"]
    run.try_to_look(failing, 50.0)
    assert told.count(failed) == 1
    run.try_to_look(failing, 51.0)
    assert told.count(failed) == 2


def test_every_query_has_a_file_of_its_own(attached, told, tmp_path):
    run = AttachedRun((1, 8), tmp_path / "kept", {})
    named = [query("1", "orders"), query("2", "orders/eu"), query("3", "orders-eu"), query("4")]
    named += [query("5", "orders"), query("6", "../orders")]
    run.look({("app", one.id): one for one in named}, 0.0)
    assert [str(file.relative_to(tmp_path / "kept")) for file in attached.files] == [
        "orders.db",
        "orders-eu-2.db",
        "orders-eu.db",
        "4.db",
        "orders-5.db",
        "query-..-orders-6.db",
    ]


def test_scaling_goes_on_until_the_threads_of_the_program_have_ended(monkeypatch, run, attached):
    monkeypatch.setattr(attached_run, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(
        queries, "queries_of_this_program", lambda: {("app", "1"): query("1", "orders")}
    )
    went_on = []

    def wait_for_the_query():
        eventually(lambda: attached.scaled, seconds=30)
        time.sleep(0.2)
        went_on.append(not attached.stopped)

    with run:
        threading.Thread(target=wait_for_the_query).start()
    assert went_on == [True]
    assert attached.stopped == ["1"]


def test_a_pool_of_the_program_that_has_nothing_to_do_does_not_keep_it_alive(run):
    pool = ThreadPoolExecutor(1)

    def program():
        with run:
            pool.submit(int).result()

    ends = threading.Thread(target=program, daemon=True)
    ends.start()
    ends.join(30)
    assert not ends.is_alive()
    pool.shutdown()


class Execution(SimpleNamespace):
    """A query in the JVM, in its session."""

    def sparkSession(self):  # noqa: N802 - Spark's name
        return SimpleNamespace(streams=lambda: SimpleNamespace(get=self.wrappers.get))

    def id(self):
        return self.number


def test_queries_of_all_sessions_are_found(monkeypatch):
    class Found:
        def __init__(self, wrapper):
            self.id = wrapper

    monkeypatch.setattr(queries, "StreamingQuery", Found)
    own = Execution(number=1, wrappers={1: "one"})
    other = Execution(number=2, wrappers={2: "two"})
    ended = Execution(number=3, wrappers={})
    state = SimpleNamespace(activeStreamingQueries=lambda: {1: own, 2: other, 3: ended, 4: None})
    session = SimpleNamespace(
        _jsparkSession=SimpleNamespace(sharedState=lambda: state),
        streams=SimpleNamespace(active=[Found("one")]),
    )
    context = SimpleNamespace(_active_spark_context=SimpleNamespace(applicationId="app"))
    sessions = SimpleNamespace(getActiveSession=lambda: None, _instantiatedSession=session)
    monkeypatch.setattr(queries, "SparkContext", context)
    monkeypatch.setattr(queries, "SparkSession", sessions)
    assert set(queries.queries_of_this_program()) == {("app", "one"), ("app", "two")}
    del session._jsparkSession
    assert set(queries.queries_of_this_program()) == {("app", "one")}, "if Spark has changed"
    context._active_spark_context = None
    assert queries.queries_of_this_program() == {}
