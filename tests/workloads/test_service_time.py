"""A wait for every event, in every kind of function that an operator can have."""

import asyncio
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from elastream import Context
from elastream.core.topology import Operator
from elastream.engines.spark.worker.function import UserFunction
from elastream.workloads.applications import Step
from elastream.workloads.service_time import with_service_time

EVENTS = pa.table({"n": [1, 2, 3], "text": ["a", "b", "c"]})
DOUBLED = {"n": [2, 4, 6]}
SERVICE_MS = 2.0
PER_EVENT = SERVICE_MS / 1000


def named(function):
    """The same in every process that runs tests: no address of an object."""
    return getattr(function, "__name__", f"a {type(function).__name__}")


def table(batch: pa.Table):
    return pa.table({"n": [2 * n for n in batch["n"].to_pylist()]})


def undeclared(batch):
    return table(batch)


def frame(batch: pd.DataFrame):
    return batch[["n"]] * 2


def rows(batch: list):
    return [{"n": 2 * row["n"]} for row in batch]


def row(one: dict):
    return {"n": 2 * one["n"]}


def told(batch: list, context: Context):
    assert context.operator == "op"
    return rows(batch)


def generated(batch: list):
    yield from rows(batch)


async def row_async(one: dict):
    return {"n": 2 * one["n"]}


async def rows_async(batch: list):
    return rows(batch)


LIFE = []


class Model:
    def setup(self):
        self.factor = 2
        LIFE.append("set up")

    def __call__(self, batch: list):
        return [{"n": self.factor * row["n"]} for row in batch]

    def close(self):
        LIFE.append("closed")


class AsyncModel(Model):
    async def __call__(self, one: dict):
        return {"n": self.factor * one["n"]}


@dataclass(frozen=True, slots=True)
class Times:
    factor: int

    def __call__(self, batch: pd.DataFrame):
        return batch[["n"]] * self.factor


def slow(function, slept, **settings):
    step = with_service_time(Step(function), SERVICE_MS, slept.append)
    return UserFunction(Operator("op", step.function, **settings))


def outcome(called):
    with called.ready():
        return called(EVENTS).to_pydict()


@pytest.fixture
def slept_async(monkeypatch):
    """What coroutines would have waited for."""
    slept, sleep = [], asyncio.sleep

    async def remember(seconds):
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", remember)
    return slept


@pytest.mark.parametrize(
    "function",
    [table, undeclared, frame, rows, told, generated, Model, Model(), Times(2)],
    ids=named,
)
def test_a_function_of_batches_waits_once_for_all_events_of_a_batch(function):
    slept = []
    assert outcome(slow(function, slept)) == DOUBLED
    assert slept == [pytest.approx(3 * PER_EVENT)]


def test_a_function_of_one_row_waits_for_one_event_however_many_columns_it_has():
    slept = []
    assert outcome(slow(row, slept)) == DOUBLED
    assert slept == [pytest.approx(PER_EVENT)] * 3


@pytest.mark.parametrize("function", [row_async, AsyncModel, AsyncModel()], ids=named)
def test_calls_of_an_async_function_still_run_at_once(function, slept_async):
    called = slow(function, [], concurrency=7)
    assert called.calls_at_once == 7
    assert outcome(called) == DOUBLED
    assert slept_async == [pytest.approx(PER_EVENT)] * 3


def test_an_async_function_of_batches_waits_for_the_batch(slept_async):
    assert outcome(slow(rows_async, [])) == DOUBLED
    assert slept_async == [pytest.approx(3 * PER_EVENT)]


@pytest.mark.parametrize("function", [Model, Model(), AsyncModel], ids=named)
def test_classes_and_objects_are_still_set_up_and_closed(function, slept_async):
    LIFE.clear()
    outcome(slow(function, []))
    assert LIFE == ["set up", "closed"]


def test_the_object_that_was_given_is_as_quick_as_before():
    given, slept = Times(2), []
    slow(given, slept)
    given(EVENTS.to_pandas())
    assert type(given) is Times
    assert slept == []


@pytest.mark.parametrize("function", [row, row_async, Model, Times(2)], ids=named)
def test_every_kind_travels_to_other_processes(function):
    step = with_service_time(Step(function), 0.001)
    there = cloudpickle.loads(cloudpickle.dumps(step.function))
    assert outcome(UserFunction(Operator("op", there))) == DOUBLED
