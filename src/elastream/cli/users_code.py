"""Errors of a user's own code, in one line that says where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from elastream.errors import ElastreamError, InvalidInputError, described, place_of


@contextmanager
def users_code(what: str, remedy: str = "") -> Iterator[None]:
    """Whatever it raises is the user's mistake; the error says where, what failed, and a remedy.

    >>> with users_code("the operator 'price' fails", "declare its execution_time"):
    ...     {}["pieces"]
    Traceback (most recent call last):
    elastream.errors.InvalidInputError: the operator 'price' fails: KeyError: 'pieces'; \
declare its execution_time
    """
    try:
        yield
    except ElastreamError:
        raise
    except Exception as error:
        end = f"; {remedy}" if remedy else ""
        place, told = place_and_cause(error)
        raise InvalidInputError(f"{place}{what}: {told}{end}") from error


def place_and_cause(error: Exception) -> tuple[str, str]:
    """Where it was raised, as the beginning of a line, and what it says."""
    place = place_of(error)
    if isinstance(error, SyntaxError):  # As text, it repeats the place.
        told = f"SyntaxError: {error.msg}"
    else:
        told = described(error).partition("\n")[0]
    return f"{place}: " if place else "", told
