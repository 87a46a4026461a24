"""`elastream explain`: what would run, before anything does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from elastream.cli.targets import Target
    from elastream.core.chains import Chains


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
    from elastream.cli.render.pipeline_drawing import lines
    from elastream.cli.render.pipeline_drawing import plot as draw
    from elastream.cli.targets import chosen_target

    if plot and plot.suffix not in (".png", ".svg"):
        raise InvalidInputError(f"--plot {plot}: name a file that ends in .png or .svg")
    target = chosen_target(pipeline, app="", pool=pool, service_ms=0.0, folder=Path())
    costs = _measured(target, pipeline) if measure else {}
    chains = _chains(target, state, costs)
    for line in lines(chains):
        typer.echo(line)
    typer.echo()
    typer.echo(_operators(chains, costs))
    for link in chains.links:
        typer.echo(str(link))
    typer.echo(_slots(chains, target))
    if plot:
        typer.echo(f"drawn in {draw(chains, plot)}")


def _chains(target: Target, state: str | None, costs: Mapping[str, float]) -> Chains:
    from elastream.core.chains import Chains
    from elastream.engines.spark.backends import open_backend
    from elastream.engines.spark.driver.chaining import chosen_chains

    if state is None:
        return Chains.planned(target.topology, costs)
    backend = open_backend(state)
    if not backend.exists:
        raise InvalidInputError(f"there is no state {state}: leave --state out before a first run")
    return chosen_chains(target.topology, backend, costs)


def _measured(target: Target, pipeline: str) -> dict[str, float]:
    from elastream.cli.own_pipeline import makers_of
    from elastream.cli.rehearsal import rehearse

    makers = makers_of(target.given)
    unmade = [of.name for of in target.topology.sources if of.name not in makers]
    if unmade:
        raise InvalidInputError(
            f"{pipeline} --measure: nothing makes the events of {', '.join(unmade)}: give each a "
            "function make(first, count) in 'sources', or leave --measure out"
        )
    found = rehearse(target.topology, makers)
    return {name: of.seconds for name, of in found.operators.items()}


def _operators(chains: Chains, costs: Mapping[str, float]) -> str:
    from elastream.cli.render.pipeline_drawing import grouping
    from elastream.cli.render.table import table
    from elastream.core.lanes import lane_count

    rows = []
    for name, operator in chains.declared.by_name.items():
        inside = name in chains.chained
        seconds = costs.get(name, operator.execution_time)
        lanes = 1 if inside else lane_count(operator.pool, operator.lanes)
        rows.append(
            [
                name,
                f"in {chains.head(name)}" if inside else f"{operator.minimum} to {operator.pool}",
                "1, for retries" if inside else f"{lanes}",
                "passed on" if inside else grouping(operator),
                "?" if seconds is None else f"{1e6 * seconds:,.3g}",
            ]
        )
    return table(
        ["operator", "replicas", "lanes", "events come by", "µs per event"],
        rows,
        numbers=["µs per event"],
    )


def _slots(chains: Chains, target: Target) -> str:
    from elastream.engines.spark.driver.preflight import Slots

    feeds = 0 if isinstance(target.given, Mapping) else len(chains.declared.sources)
    slots = Slots.of(chains.topology, feeds, len(target.outputs))
    return (
        f"task slots: {slots.enough}, so that one generation of workers takes over while the other "
        f"works; {slots.needed} are enough for one; on a cluster, {slots.least} are"
    )
