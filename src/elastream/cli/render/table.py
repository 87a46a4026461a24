"""A table of plain text, the same on a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str] = ()) -> str:
    """Columns as wide as what they hold; those named in `numbers` are flush right.

    >>> print(table(["model", "ms"], [["lr", "0.1"], ["arima", "37.0"]], numbers=["ms"]))
    model    ms
    lr      0.1
    arima  37.0
    """
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    to_right = [title in numbers for title in header]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, to_right, strict=True)
        ).rstrip()
        for line in lines
    )
