"""What a look at a query asks of Spark, and how often: every call takes time from the query."""

import json
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from elastream.engines.attached import query as module
from elastream.engines.attached.query import Listener, QueryView


class Nothing:
    """A status store in which nothing has happened yet."""

    def __init__(self, context):
        pass

    def jobs_started(self):
        return 0

    def running_jobs(self):
        return []


@pytest.fixture
def jvm():
    """The query in the JVM; its sources are at these offsets."""
    made = MagicMock()
    offsets = made.streamingQuery().availableOffsets().values()
    offsets.mkString = lambda start, between, end: start + between.join(["12", '{"t": 30}']) + end
    return made


@pytest.fixture
def view(jvm, monkeypatch):
    monkeypatch.setattr(module, "StatusStore", Nothing)
    query = SimpleNamespace(id="1", runId="2", isActive=True, _jsq=jvm)
    return QueryView(SimpleNamespace(sparkContext=None), query)


def test_the_position_is_the_sum_over_all_sources(view):
    assert view.position == 42


def test_a_look_asks_for_the_offsets_and_for_nothing_that_stays_as_it_is(view, jvm):
    jvm.reset_mock()
    assert view.position == 42
    view.tasks()
    assert [str(each) for each in jvm.mock_calls] == [
        "call.streamingQuery().availableOffsets()",
        "call.streamingQuery().availableOffsets().values()",
    ]


def test_a_query_that_is_restarted_is_looked_at_in_its_new_run(view, jvm):
    old = view._query
    old.isActive = False
    again = MagicMock()
    again.streamingQuery().availableOffsets().values().mkString.return_value = json.dumps([7])
    restarted = SimpleNamespace(id="1", runId="3", isActive=True, _jsq=again)
    view._session.streams = SimpleNamespace(active=[restarted])
    assert view.running
    assert view.position == 7


def test_without_spark_s_own_classes_the_position_is_unknown(jvm, view):
    jvm.streamingQuery.side_effect = AttributeError("no such method")
    view._follow(view._query)
    assert view.position is None
    assert view.trigger_seconds == 0.0


def test_of_a_batch_that_has_ended_only_its_query_and_its_progress_are_read():
    told, event = [], MagicMock()
    event.progress().id().toString.return_value = "1"
    event.progress().json.return_value = "{}"
    listener = Listener("1", told.append)
    event.reset_mock()
    listener.onQueryProgress(event)
    assert told == ["{}"]
    assert len(event.mock_calls) == 4


def test_batches_of_other_queries_are_not_passed_on():
    told, event = [], MagicMock()
    event.progress().id().toString.return_value = "2"
    Listener("1", told.append).onQueryProgress(event)
    assert not told
