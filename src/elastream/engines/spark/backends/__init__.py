"""Where a pipeline's state lives: small ports, and what implements them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from elastream.engines.spark.backends.base import Backend
from elastream.errors import InvalidInputError

_DEFAULT = "sqlite"
"""What a folder is."""


def open_backend(state: str | Path | Backend, checkpoint: str | Path | None = None) -> Backend:
    """The backend at a URL, such as `sqlite:FOLDER`; a folder alone is an SQLite one.

    Args:
        state: The URL or the folder.
        checkpoint: Where Spark notes how far DataFrames were read, if the state is no folder.

    >>> open_backend("out/state").url == open_backend("sqlite:out/state").url
    True
    """
    if isinstance(state, Backend):
        return state
    scheme, colon, rest = str(state).partition(":")
    if not colon or len(scheme) < 2 or isinstance(state, Path):  # One letter is a drive.
        scheme, rest = _DEFAULT, str(state)
    if scheme not in _OPENERS:
        known = ", ".join(f"{name}:..." for name in _OPENERS)
        raise InvalidInputError(
            f"the state {state!r} is neither a folder nor a known kind of URL: {known}"
        )
    if not rest:
        raise InvalidInputError(f"the state {state!r} names no place: write {scheme}:PLACE")
    return _OPENERS[scheme](rest, str(checkpoint or ""))


def import_default() -> None:
    """Import what a state in a folder needs, for the processes that are forked from this one."""
    import elastream.engines.spark.backends.sqlite  # noqa: F401


def _sqlite(place: str, checkpoint: str) -> Backend:
    from elastream.engines.spark.backends.sqlite import SqliteBackend

    if checkpoint:
        raise InvalidInputError(
            f"the checkpoint {checkpoint} cannot be apart from the state, which is the folder "
            f"{place} and holds it: leave the checkpoint out"
        )
    return SqliteBackend(Path(place))


def _kafka(place: str, checkpoint: str) -> Backend:
    from elastream.engines.spark.backends.kafka import KafkaBackend

    return KafkaBackend.parse(place, checkpoint)


_OPENERS: dict[str, Callable[[str, str], Backend]] = {_DEFAULT: _sqlite, "kafka": _kafka}
