"""A user's program while it runs: attaches to every query that it starts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from elastream.cli.render.logs import tell
from elastream.errors import ElastreamError, described
from elastream.running.attach import attach

LOOK_SECONDS = 0.5


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
        self._known: set[str] = set()
        self._scalers = ExitStack()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> AttachedRun:
        # Imported here and not in the thread: the program imports PySpark at the same time.
        from elastream.engines.attached.query import queries_of_this_program

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
        self._over.set()
        if self._thread:
            self._thread.join()
        self._scalers.close()
        if not self._known and error is None:
            tell(
                "nothing was scaled: no streaming query of this program was seen; those of Spark "
                "Connect run in its server, out of reach"
            )

    def _run(self, queries: Callable[[], Iterable[Any]]) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                new = [one for one in queries() if str(one.id) not in self._known]
            except Exception:  # A session that is just being made or stopped.
                continue
            for query in new:
                self._known.add(str(query.id))
                try:
                    self._attach(query)
                except ElastreamError as error:  # The program keeps running, unscaled.
                    tell(f"{query.name or query.id} is not scaled: {error}")
                except Exception as error:  # A query or a session that has just ended, too.
                    tell(f"{query.id} is not scaled: {described(error)}")

    def _attach(self, query: Any) -> None:
        history = self._history(query)
        scaler = attach(query, self._executors, history=history, **self._wishes)
        self._scalers.callback(scaler.stop)
        least, most = self._executors
        tell(f"scaling {scaler.engine.name}: {least} to {most} executors")
        if scaler.url:
            tell(f"watch and steer {scaler.engine.name} at {scaler.url}", url=scaler.url)

    def _history(self, query: Any) -> Path | None:
        if self._folder is None:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / f"{query.name or query.id}.db"
