"""How a benchmark is started by hand: what its module says about itself is its help."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection
from typing import NoReturn


def described(about: str | None) -> argparse.ArgumentParser:
    """A parser for the module that was started, with its text as it was written."""
    spec = sys.modules["__main__"].__spec__
    return argparse.ArgumentParser(
        prog=f"python -m {spec.name.removesuffix('.__main__')}" if spec else None,
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def by_hand(main: Callable[..., bool], parts: Collection[str] = ()) -> NoReturn:
    """Run a benchmark, or those of its parts that are named; exit with 1 if it missed a target."""
    parser = described(sys.modules[main.__module__].__doc__)

    def part(name: str) -> str:
        if name not in parts:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(parts)}")
        return name

    if parts:
        text = f"all, or some of {', '.join(parts)}"
        parser.add_argument("parts", nargs="*", metavar="NAME", type=part, help=text)
    named = parser.parse_args()
    raise SystemExit(not main(*getattr(named, "parts", ())))


def positive(text: str) -> int:
    """A count that makes sense."""
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return count
