"""An operator's function in one replica, whatever kind of function it is.

| what you write | what happens |
| --- | --- |
| `def f(batch)` | it is called with a batch: see `elastream.engines.spark.worker.events` |
| `def f(row: dict)` | it is called with every event, and returns a row, a list of rows, or None |
| a generator | what it yields is put out together |
| `async def f(row: dict)` | at most `concurrency` calls at once; their order is kept |
| a class with `setup`, `__call__`, `close` | every replica makes one, sets it up once, closes it |
| `def f(..., context: elastream.Context)` | every call learns which unit of work it is in |
"""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, get_args, get_origin

import pyarrow as pa

from elastream.core.context import Context
from elastream.core.topology import Operator
from elastream.engines.spark.worker.events import (
    input_of,
    is_callable_class,
    parameters_of,
    rows_of,
    takes_rows,
    to_table,
    unchanged,
)
from elastream.errors import InvalidInputError


class UserFunction:
    """Calls the function of an operator with tables, and returns tables."""

    def __init__(self, operator: Operator) -> None:
        self._name = operator.name
        self._function: Callable[..., Any] = operator.function
        self._setup, self._teardown = operator.setup, operator.teardown
        self._arguments: tuple[Any, ...] = ()
        self._by_row = takes_rows(operator.function)
        convert = input_of(operator.function)
        self._convert = None if convert is unchanged else convert
        self._concurrency = operator.concurrency
        self._runner: asyncio.Runner | None = None
        self._is_async = is_async(operator.function)
        self._context = context_parameter(operator.function)

    @property
    def wants_context(self) -> bool:
        """Whether it asks for a `Context`."""
        return self._context is not None

    @property
    def takes_rows(self) -> bool:
        """Whether it is called with one event after the other."""
        return self._by_row

    @property
    def calls_at_once(self) -> int:
        """How many events it can work on at the same time."""
        return self._concurrency if self._is_async and self._by_row else 1

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Set up what the function needs, and release it at the end."""
        with ExitStack() as undo:
            if self._is_async:
                self._runner = undo.enter_context(asyncio.Runner())
            if is_callable_class(self._function):
                self._function = self._function()
            made = self._function
            if is_callable_class(type(made)):
                # `close` is called also if `setup` fails half-way.
                undo.callback(self._finished, getattr(made, "close", _nothing))
                self._finished(getattr(made, "setup", _nothing))
            if self._setup is not None:
                resource = self._finished(self._setup)
                self._arguments = (resource,)
                if self._teardown is not None:
                    undo.callback(self._finished, self._teardown, resource)
            yield

    def __call__(self, table: pa.Table, contexts: Sequence[Context] = ()) -> pa.Table:
        """What the function makes of the events.

        Args:
            table: The events.
            contexts: One for every event, if the function wants them; without, as in a rehearsal,
                the events are a unit that nobody has seen before.
        """
        if self._context is not None and not contexts:
            unit = uuid.uuid4().hex
            contexts = [Context(self._name, 0, unit, 1, n) for n in range(max(table.num_rows, 1))]
        if not self._by_row:
            content = self._convert(table) if self._convert else table
            named = {self._context: contexts[0]} if self._context else {}
            output = self._function(content, *self._arguments, **named)
            return to_table(self._result(output) if self._runner else output, self._name)
        rows = table.to_pylist()
        each_named = [
            {self._context: contexts[place]} if self._context else {} for place in range(len(rows))
        ]
        if self._runner is None:
            outputs = [
                self._function(row, *self._arguments, **named)
                for row, named in zip(rows, each_named, strict=True)
            ]
        else:
            outputs = self._runner.run(self._all(rows, each_named))
        return to_table([row for each in outputs for row in rows_of(each, self._name)], self._name)

    async def _all(self, rows: list[Any], each_named: list[dict[str, Context]]) -> list[Any]:
        """Call it for all rows, a bounded number at once; outputs come in the order of the rows."""
        room = asyncio.Semaphore(self._concurrency)

        async def one(row: Any, named: dict[str, Context]) -> Any:
            async with room:
                return await self._function(row, *self._arguments, **named)

        async with asyncio.TaskGroup() as calls:
            tasks = [calls.create_task(one(*each)) for each in zip(rows, each_named, strict=True)]
        return [task.result() for task in tasks]

    def _finished(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function; what it returns, also an asynchronous one."""
        return self._result(function(*arguments))

    def _result(self, output: Any) -> Any:
        """What a call returned, or what comes of it if it has to be awaited."""
        if self._runner is not None and inspect.isawaitable(output):
            return self._runner.run(_awaited(output))
        return output


def context_parameter(function: Callable[..., Any]) -> str | None:
    """The name of the parameter that asks for a `Context`, if there is one.

    >>> def store(rows: list, context: Context): ...
    >>> context_parameter(store), context_parameter(len)
    ('context', None)
    """
    parameters = parameters_of(function)
    wanted = [place for place, each in enumerate(parameters) if _is_context(each.annotation)]
    if not wanted:
        return None
    place, label = wanted[0], getattr(function, "__name__", repr(function))
    if place == 0:
        raise InvalidInputError(
            f"the function {label!r} asks for a Context first, and its first parameter gets the "
            "events: put the Context after it"
        )
    if _is_several(parameters[place].annotation):
        raise InvalidInputError(
            f"the function {label!r} asks for several Contexts, and gets one, which is that of its "
            "first event: write context: elastream.Context"
        )
    later = parameters[place + 1 :]
    if any(
        each.kind is each.POSITIONAL_OR_KEYWORD and each.default is each.empty for each in later
    ):
        raise InvalidInputError(
            f"the function {label!r} has a parameter after its Context: put the Context last"
        )
    return parameters[place].name


def _is_context(annotation: Any) -> bool:
    """Also one that may be None, or whose module could not be found."""
    if isinstance(annotation, str):
        return annotation.split("|")[0].strip().rpartition(".")[2] == Context.__name__
    return annotation is Context or Context in get_args(annotation)


def _is_several(annotation: Any) -> bool:
    origin = get_origin(annotation)
    return isinstance(origin, type) and issubclass(origin, Iterable)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether it has to be awaited.

    >>> async def look_up(row: dict): ...
    >>> is_async(look_up), is_async(len)
    (True, False)
    """
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - its own, not whether there is one
    )


async def _awaited(output: Awaitable[Any]) -> Any:
    return await output


def _nothing() -> None:
    """For objects that need neither `setup` nor `close`."""
