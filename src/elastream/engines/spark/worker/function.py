"""An operator's function in one replica, whatever kind of function it is.

| what you write | what happens |
| --- | --- |
| `def f(batch)` | it is called with a batch: see `elastream.engines.spark.worker.events` |
| `def f(row: dict)` | it is called with every event, and returns a row, a list of rows, or None |
| a generator | what it yields is put out together |
| `async def f(row: dict)` | at most `concurrency` calls at once; their order is kept |
| a class with `setup`, `__call__`, `close` | every replica makes one, sets it up once, closes it |
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa

from elastream.core.topology import Operator
from elastream.engines.spark.worker.events import (
    input_of,
    is_callable_class,
    rows_of,
    takes_rows,
    to_table,
)


class UserFunction:
    """Calls the function of an operator with tables, and returns tables."""

    def __init__(self, operator: Operator) -> None:
        self._name = operator.name
        self._function: Callable[..., Any] = operator.function
        self._setup, self._teardown = operator.setup, operator.teardown
        self._arguments: tuple[Any, ...] = ()
        self._by_row = takes_rows(operator.function)
        self._convert = input_of(operator.function)
        self._concurrency = operator.concurrency
        self._runner: asyncio.Runner | None = None
        self._is_async = is_async(operator.function)

    @property
    def calls_at_once(self) -> int:
        """How many events it can work on at the same time."""
        return self._concurrency if self._is_async and self._by_row else 1

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Make what the function needs, and let go of it in the end."""
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

    def __call__(self, table: pa.Table) -> pa.Table:
        """What the function makes of the events."""
        if not self._by_row:
            output = self._finished(self._function, self._convert(table), *self._arguments)
            return to_table(output, self._name)
        rows = table.to_pylist()
        if self._runner is None:
            outputs = [self._function(row, *self._arguments) for row in rows]
        else:
            outputs = self._runner.run(self._all(rows))
        return to_table([row for each in outputs for row in rows_of(each, self._name)], self._name)

    async def _all(self, rows: list[Any]) -> list[Any]:
        """Call it for all rows, a bounded number at once; outputs come in the order of the rows."""
        room = asyncio.Semaphore(self._concurrency)

        async def one(row: Any) -> Any:
            async with room:
                return await self._function(row, *self._arguments)

        async with asyncio.TaskGroup() as calls:
            tasks = [calls.create_task(one(row)) for row in rows]
        return [task.result() for task in tasks]

    def _finished(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns, also an asynchronous one."""
        output = function(*arguments)
        if self._runner is not None and inspect.isawaitable(output):
            return self._runner.run(_awaited(output))
        return output


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
