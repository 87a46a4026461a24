"""`elastream explain`: what would run, before anything does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from elastream.cli.own_pipeline import OwnPipeline
    from elastream.core.chains import Chains
    from elastream.core.topology import Topology

UNKNOWN = "?"


def explain(
    pipeline: Annotated[str, typer.Argument(help="Your own pipeline, as FILE.py:NAME.")],
    state: Annotated[
        str | None,
        typer.Option(help="The state that a run would resume: its chains and measurements."),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Run the functions on 1,000 events of your sources first."),
    ] = False,
    pool: Annotated[
        int | None, typer.Option(min=1, help="Replicas in the pool of each operator.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw it, in a PNG or an SVG file.")] = None,
) -> None:
    """Show operators, chains, lanes and task slots of a pipeline, and why they are as they are."""
    from elastream.cli.own_pipeline import OwnPipeline
    from elastream.cli.render.pipeline_drawing import lines
    from elastream.cli.render.pipeline_drawing import plot as draw
    from elastream.cli.simulated import resized
    from elastream.engines.spark.driver.preflight import check_functions

    if plot and plot.suffix not in (".png", ".svg"):
        raise InvalidInputError(f"--plot {plot}: name a file that ends in .png or .svg")
    own = OwnPipeline.named(pipeline)
    topology = resized(own.topology, pool)
    costs = _measured(own, pipeline) if measure else {}
    chains = _chains(topology, state, costs)
    check_functions(chains)
    for line in lines(chains):
        typer.echo(line)
    typer.echo()
    typer.echo(_operators(chains, costs))
    for link in chains.links:
        typer.echo(str(link))
    typer.echo(_slots(chains, own))
    if plot:
        typer.echo(f"drawn in {draw(chains, plot)}")


def _chains(topology: Topology, state: str | None, costs: Mapping[str, float]) -> Chains:
    from elastream.core.chains import Chains
    from elastream.engines.spark.backends import open_backend
    from elastream.engines.spark.driver.chaining import chosen_chains

    if state is None:
        return Chains.planned(topology, costs)
    backend = open_backend(state)
    if not backend.exists:
        raise InvalidInputError(f"there is no state {state}: leave --state out before a first run")
    return chosen_chains(topology, backend, costs)


def _measured(own: OwnPipeline, pipeline: str) -> dict[str, float]:
    from elastream.cli.rehearsal import rehearse

    unmade = [of.name for of in own.topology.sources if of.name not in own.makers]
    if unmade:
        raise InvalidInputError(
            f"{pipeline} --measure: nothing makes the events of {', '.join(unmade)}: give each a "
            "function make(first, count) in 'sources', or leave --measure out"
        )
    found = rehearse(own.topology, own.makers)
    return {name: of.seconds for name, of in found.operators.items()}


def _operators(chains: Chains, costs: Mapping[str, float]) -> str:
    from elastream.cli.render.pipeline_drawing import grouping, lanes
    from elastream.cli.render.table import table
    from elastream.core.chains import microseconds

    rows = []
    for name, operator in chains.declared.by_name.items():
        inside = name in chains.chained
        seconds = costs.get(name, operator.execution_time)
        rows.append(
            [
                name,
                f"in {chains.head(name)}" if inside else f"{operator.minimum} to {operator.pool}",
                "1, for retries" if inside else lanes(operator),
                "passed on" if inside else grouping(operator),
                UNKNOWN if seconds is None else microseconds(seconds),
            ]
        )
    told = table(
        ["operator", "replicas", "lanes", "events come by", "µs per event"],
        rows,
        numbers=["µs per event"],
    )
    if any(row[-1] == UNKNOWN for row in rows):
        told += f"\n{UNKNOWN}: unknown; --measure tries the functions, or declare execution_time="
    return told


def _slots(chains: Chains, own: OwnPipeline) -> str:
    from elastream.engines.spark.driver.preflight import Slots

    feeds = len(chains.declared.sources) if callable(own.sources) else 0
    slots = Slots.of(chains.topology, feeds, len(getattr(own.module, "outputs", {})))
    unknown = "" if own.sources is not None else "; for each source that is a DataFrame, one more"
    return (
        f"task slots: {slots.enough}, so that one generation of workers takes over while the other "
        f"works; {slots.needed} are enough for one; on a cluster, {slots.least} are{unknown}"
    )
