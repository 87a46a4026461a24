"""`elastream traces`: the input rates that are shipped, or those of a file, listed and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elastream.cli.options import FillGaps

if TYPE_CHECKING:
    from elastream.workloads.traces import Trace

HEADER = ["name", "step", "length", "mean/s", "peak/s", "", "what it is"]
BARS = "▁▂▃▄▅▆▇█"


def traces(
    name: Annotated[
        str | None,
        typer.Argument(help="A name from the list, or a CSV file time,value; by default all."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the shipped traces.")] = 0,
    fill_gaps: FillGaps = False,
    out: Annotated[Path | None, typer.Option(help="Draw them in this PNG file.")] = None,
) -> None:
    """List the traces with their length, rates and shape; --out draws them."""
    from elastream.cli.render.table import table
    from elastream.workloads import TRACES
    from elastream.workloads.choice import chosen_trace

    chosen = {each: chosen_trace(each, seed, fill_gaps) for each in ([name] if name else TRACES)}
    rows = [_row(each, trace, _idea(each)) for each, trace in chosen.items()]
    typer.echo(table(HEADER, rows, numbers=["step", "length", "mean/s", "peak/s"]))
    if out is not None:
        from elastream.cli.render.plots import draw_traces

        typer.echo(f"drawn in {draw_traces(chosen, out)}")


def _row(name: str, trace: Trace, idea: str) -> list[str]:
    rates = trace.rates
    sizes = f"{rates.mean():,.0f}", f"{rates.max():,.0f}"
    return [name, f"{trace.step:g} s", f"{trace.duration:,.0f} s", *sizes, sparkline(trace), idea]


def _idea(name: str) -> str:
    """The first line of its docstring says what it is."""
    from elastream.workloads import TRACES

    return (TRACES[name].__doc__ or "").partition("\n")[0] if name in TRACES else "a file"


def sparkline(trace: Trace, width: int = 24) -> str:
    """The shape in one line of text: the mean of each part, from 0 to the highest.

    >>> from elastream.workloads import TRACES
    >>> sparkline(TRACES["step"](), width=6)
    '▃▃▃███'
    """
    import numpy as np

    parts = [part.mean() for part in np.array_split(trace.values, min(width, len(trace.values)))]
    top = max(parts) or 1.0
    return "".join(BARS[min(int(part / top * len(BARS)), len(BARS) - 1)] for part in parts)
