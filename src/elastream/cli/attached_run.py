"""A user's program while it runs: attaches to every query that it starts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures.thread import _threads_queues
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from elastream.cli.render.logs import report
from elastream.errors import ElastreamError, described
from elastream.running.attach import attach
from elastream.running.scaler import Scaler

LOOK_SECONDS = 0.5
GONE_SECONDS = 60.0
"""How long a query may be gone before its scaler stops; one that is restarted sooner keeps it."""
RETRY_SECONDS = 10.0
"""From one attempt to attach to a query to the next."""
UNSEEN_SECONDS = 10.0
"""How long looking for queries may fail before that is reported."""

Key = tuple[str, str]
"""The application of a query, and its identifier, which it has in the next application, too."""


@dataclass
class _Attached:
    scaler: Scaler
    history: Path | None
    seen: float
    """When its query was last seen running."""


@dataclass(frozen=True)
class _Refusal:
    message: str
    at: float


class AttachedRun:
    """Looks for queries while its block runs, and scales them.

    Args:
        executors: The minimum and the maximum.
        folder: For the history of every query.
        wishes: All other arguments of `attach`.
    """

    def __init__(
        self, executors: tuple[int, int], folder: Path | None, wishes: Mapping[str, Any]
    ) -> None:
        self._executors = executors
        self._folder = folder
        self._wishes = wishes
        self._seen_any = False
        self._attached: dict[Key, _Attached] = {}
        self._refused: dict[Key, _Refusal] = {}
        self._looked: float | None = None
        """When looking last succeeded, or was first tried."""
        self._reported = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._threads_before: frozenset[threading.Thread] = frozenset()

    def __enter__(self) -> AttachedRun:
        # Imported here and not in the thread: the program imports PySpark at the same time.
        from elastream.engines.attached.query import queries_of_this_program

        self._threads_before = frozenset(threading.enumerate())
        arguments = (queries_of_this_program,)
        self._thread = threading.Thread(
            target=self._run, args=arguments, name="attach", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            # What else has failed is to be seen at once.
            if error is None or isinstance(error, SystemExit):
                self._await_threads()
        finally:
            self._over.set()
            if self._thread:
                self._thread.join()
            for key in list(self._attached):
                self._stop(key)
        if not self._seen_any and error is None:
            report(
                "nothing was scaled: no streaming query of this program was seen; those of Spark "
                "Connect run in its server, out of reach"
            )

    def look(self, running: Mapping[Key, Any], now: float) -> None:
        """Attach to the queries that run and are not attached; stop the scalers of those gone."""
        self._seen_any |= bool(running)
        applications = {application for application, _ in running}
        for key, attached in list(self._attached.items()):
            query = running.get(key)
            if query is not None:
                attached.seen = now
                # A scaler looks in the session of its query, and this one may be in another.
                if not attached.scaler.engine.view.running and query.isActive:
                    report(f"{attached.scaler.engine.name} runs in another session now")
                    self._stop(key)
                continue
            # A program has one application at a time.
            replaced = applications and key[0] not in applications
            if replaced or now - attached.seen >= GONE_SECONDS:
                report(f"{attached.scaler.engine.name} has ended and is no longer scaled")
                self._stop(key)
        self._refused = {key: told for key, told in self._refused.items() if key in running}
        for key, query in running.items():
            refusal = self._refused.get(key)
            if key not in self._attached and (refusal is None or now - refusal.at >= RETRY_SECONDS):
                self._try(key, query, now)

    def try_to_look(self, queries: Callable[[], Mapping[Key, Any]], now: float) -> None:
        """Look, and report a failure that lasts: a session may just be starting or stopping."""
        try:
            self.look(queries(), now)
        except Exception as error:
            self._looked = now if self._looked is None else self._looked
            if now - self._looked >= UNSEEN_SECONDS and not self._reported:
                self._reported = True
                report(f"queries are no longer found or scaled: {described(error)}")
        else:
            self._looked, self._reported = now, False

    def _run(self, queries: Callable[[], Mapping[Key, Any]]) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.try_to_look(queries, time.monotonic())

    def _await_threads(self) -> None:
        """Wait as Python does at its end: a thread of the program may be waiting for a query.

        The threads of pools are left out: they wait for work, until Python ends them.
        """
        while threads := [
            thread
            for thread in threading.enumerate()
            if not thread.daemon
            and thread not in self._threads_before
            and thread not in _threads_queues
        ]:
            threads[0].join()

    def _try(self, key: Key, query: Any, now: float) -> None:
        try:
            self._attach(key, query, now)
            self._refused.pop(key, None)
            return
        except ElastreamError as error:  # The program keeps running, unscaled.
            message = f"{query.name or query.id} is not scaled: {error}"
        except Exception as error:  # A query or a session that has just ended, too.
            message = f"{key[1]} is not scaled: {described(error)}"
        if key not in self._refused or self._refused[key].message != message:
            report(message)
        self._refused[key] = _Refusal(message, now)

    def _attach(self, key: Key, query: Any, now: float) -> None:
        history = self._history(query)
        scaler = attach(query, self._executors, history=history, **self._wishes)
        self._attached[key] = _Attached(scaler, history, now)
        least, most = self._executors
        report(f"scaling {scaler.engine.name}: {least} to {most} executors")
        if scaler.url:
            report(f"watch and steer {scaler.engine.name} at {scaler.url}", url=scaler.url)

    def _stop(self, key: Key) -> None:
        with suppress(Exception):  # Its session may have ended.
            self._attached.pop(key).scaler.stop()

    def _history(self, query: Any) -> Path | None:
        """A file of its own, named after the query where its name can be that of a file."""
        from elastream.engines.attached.engine import operator_name

        if self._folder is None:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        name = operator_name(query.name)
        file = self._folder / f"{name}.db"
        # Queries of several sessions may have the same name.
        if name != query.name or any(each.history == file for each in self._attached.values()):
            file = self._folder / (f"{name}-{query.id}.db" if query.name else f"{query.id}.db")
        return file
