"""What a state keeps when no run uses it, piece by piece, whatever its backend.

A savepoint is the name and the layout of a pipeline, and these pieces in this order:

| piece | what it is |
| --- | --- |
| `OutputPosition` | up to where the output of an operator was read |
| `Admitted` | up to where a source has taken the batches of a DataFrame |
| `Counted` | what a member has counted |
| `Waiting` | events that wait in a lane; those of one lane come in its order |
| `OutputBatch` | events that wait to be read as a DataFrame |
| `DeadLetter` | events that could not be processed, oldest first |

Plans, members and generations are of a run, and are not kept. Each piece is written as a line of
JSON and some bytes: nothing that is read back can run code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.encoding import counts_from_json, counts_to_json, unit_fields
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.parcels import Unit
from elastream.engines.spark.births import Births
from elastream.errors import InvalidInputError

LONGEST_LINE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class OutputPosition:
    """Up to where an output was read."""

    output: str
    """As `output_of` calls it."""
    consumed: int
    newest: int
    """No number up to this one may be given out again: queries remember them."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The newest batch of a DataFrame that a source has let in."""

    source: str
    number: int


@dataclass(frozen=True, slots=True)
class Counted:
    """What a member has counted."""

    member: MemberName
    counts: Counts


@dataclass(frozen=True, slots=True)
class Waiting:
    """Events that wait together in one lane."""

    operator: str
    lane: int
    events: int
    births: Births
    data: bytes
    deaths: int = 0
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class OutputBatch:
    """Events that wait to be read under a number."""

    output: str
    number: int
    events: int
    data: bytes


Kept = OutputPosition | Admitted | Counted | Waiting | OutputBatch | DeadLetter


class _Line(NamedTuple):
    kind: str
    values: list[Any]
    sizes: list[int]


def write(pieces: Iterable[Kept], file: IO[bytes]) -> None:
    """Write them down, one after the other."""
    for piece in pieces:
        values, data = _written(piece)
        line = _Line(type(piece).__name__, values, [len(each) for each in data])
        file.write(json.dumps(line).encode() + b"\n")
        file.writelines(data)


def read(file: IO[bytes]) -> Iterator[Kept]:
    """What `write` has written."""
    try:
        while text := file.readline(LONGEST_LINE):
            kind, values, sizes = _Line(*json.loads(text))
            yield _MAKERS[kind](values, [_exactly(file, size) for size in sizes])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InvalidInputError(f"a piece of the state cannot be read: {error!r}") from None


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise ValueError("it ends too early")
    return data


def _written(piece: Kept) -> tuple[list[Any], list[bytes]]:
    match piece:
        case OutputPosition(output, consumed, newest):
            return [output, consumed, newest], []
        case Admitted(source, number):
            return [source, number], []
        case Counted(member, counts):
            return [*member, counts_to_json(counts)], []
        case Waiting(operator, lane, events, births, data, deaths, unit):
            named = unit_fields(unit) if unit else None
            return [operator, lane, events, deaths, named], [births.to_bytes(), data]
        case OutputBatch(output, number, events, data):
            return [output, number, events], [data]
        case DeadLetter(operator, events, error, data, lane, time, number):
            return [operator, events, error, lane, time, number], [data]


def _waiting(values: list[Any], data: list[bytes]) -> Waiting:
    operator, lane, events, deaths, unit = values
    births = Births.from_bytes(data[0])
    if births.events != events:
        raise ValueError(f"{events} events have {births.events} times")
    named = Unit(*unit) if unit else None
    return Waiting(operator, lane, events, births, data[1], deaths, named)


def _letter(values: list[Any], data: list[bytes]) -> DeadLetter:
    operator, events, error, lane, time, number = values
    return DeadLetter(operator, events, error, data[0], lane, time, number)


_MAKERS: dict[str, Any] = {
    "OutputPosition": lambda values, _: OutputPosition(*values),
    "Admitted": lambda values, _: Admitted(*values),
    "Counted": lambda values, _: Counted((values[0], values[1]), counts_from_json(values[2])),
    "Waiting": _waiting,
    "OutputBatch": lambda values, data: OutputBatch(values[0], values[1], values[2], data[0]),
    "DeadLetter": _letter,
}
