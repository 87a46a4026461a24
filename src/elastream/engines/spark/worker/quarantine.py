"""Quarantine: events on which processes have died are tried one by one, in a process that may die.

The child sets up what the function needs by itself, as a connection must not be shared with its
parent, and runs the function on one event after the other. When it dies, or does not answer in
time, the event that it was at is the one to blame; another child continues with the next. If the
child cannot be set up, no event is to blame.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess
from typing import Any

import pyarrow as pa

from elastream.core.context import Context
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.errors import described

DEATHS = 3
"""After this many deaths on the same events, they go into quarantine."""

TEAR_DOWN_SECONDS = 10.0
"""How long a child may take to tear down what it has set up."""

_FORK = multiprocessing.get_context("fork")


class SetupError(Exception):
    """What the function needs cannot be set up in a child."""


class Quarantine:
    """Runs a function where it can do no harm.

    Args:
        ready: Sets up and tears down what the function needs.
        call: Runs the function on a table, with the contexts of its events, and returns one.
        timeout: How long it may take for an event, in seconds.
    """

    def __init__(
        self,
        ready: Callable[[], AbstractContextManager[None]],
        call: Callable[[pa.Table, Sequence[Context]], pa.Table],
        timeout: float | None = None,
    ) -> None:
        self._ready = ready
        self._call = call
        self._timeout = timeout

    def run(self, table: pa.Table, contexts: Sequence[Context] = ()) -> list[pa.Table | str]:
        """For every event its output: a table, or the reason why there is none.

        Raises:
            SetupError: The next event could not be tried.
        """
        outcomes: list[pa.Table | str] = []
        while (done := len(outcomes)) < table.num_rows:
            outcomes += self._run_until_death(table.slice(done), contexts[done:])
        return outcomes

    def _run_until_death(
        self, table: pa.Table, contexts: Sequence[Context]
    ) -> list[pa.Table | str]:
        ours, theirs = _FORK.Pipe(duplex=False)
        child = _FORK.Process(target=self._live, args=(table, contexts, theirs))
        child.start()
        theirs.close()
        outcomes: list[pa.Table | str] = []
        try:
            self._wait_until_ready(ours, child)
            while len(outcomes) < table.num_rows:
                if not ours.poll(self._timeout):
                    child.kill()
                    outcomes.append(f"it took longer than {self._timeout:g} s")
                    break
                kind, content = ours.recv()
                outcomes.append(from_bytes(content) if kind == "table" else content)
        except EOFError:
            child.join()
            outcomes.append(f"the process died ({_manner(child.exitcode)})")
        finally:
            ours.close()
            child.join(TEAR_DOWN_SECONDS)
            child.kill()
            child.join()
        return outcomes

    def _wait_until_ready(self, pipe: Pipe[Any, Any], child: BaseProcess) -> None:
        """To set up may take as long as in a replica: the time-out is for events."""
        try:
            problem = pipe.recv()
        except EOFError:
            child.join()
            problem = f"the process died ({_manner(child.exitcode)})"
        if problem:
            raise SetupError(f"what the function needs could not be set up again: {problem}")

    def _live(self, table: pa.Table, contexts: Sequence[Context], pipe: Pipe[Any, Any]) -> None:
        with ExitStack() as undo:
            try:
                undo.enter_context(self._ready())
            except Exception as error:
                pipe.send(described(error))
                return
            pipe.send(None)
            for place in range(table.num_rows):
                try:
                    output = self._call(table.slice(place, 1), contexts[place : place + 1])
                    pipe.send(("table", to_bytes(output)))
                except Exception as error:
                    pipe.send(("error", described(error)))


def _manner(exit_code: int | None) -> str:
    """How a process ended.

    >>> _manner(-11), _manner(3)
    ('SIGSEGV', 'exit code 3')
    """
    if exit_code is not None and exit_code < 0:
        return signal.Signals(-exit_code).name
    return f"exit code {exit_code}"
