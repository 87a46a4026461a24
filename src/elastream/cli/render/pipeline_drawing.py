"""A pipeline as a picture: what shares replicas, and the hops between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elastream.core.chains import Chains
from elastream.core.lanes import lane_count
from elastream.core.topology import Edge, Operator
from elastream.figures import new_figure, save

ARROW = " → "
SOURCE, CHAIN, SINGLE = "#64748b", "#dbeafe", "#f1f5f9"
BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y = 2.6, 0.9, 1.1, 0.5
MARGIN = 0.1
"""On both sides, for the outlines of boxes."""


def lines(chains: Chains) -> Iterator[str]:
    """The pipeline as a tree: successors are below their node, indented.

    A node with several predecessors is shown in full where it comes first.
    """
    told: set[str] = set()
    for source in chains.topology.sources:
        yield source.name
        yield from _below(chains, source.name, "", told)


def _below(chains: Chains, node: str, indent: str, told: set[str]) -> Iterator[str]:
    edges = chains.topology.outgoing[node]
    for place, edge in enumerate(edges):
        last = place == len(edges) - 1
        branch, trunk = ("└", " ") if last else ("├", "│")
        operator = chains.topology.by_name[edge.target]
        again = operator.name in told
        what = f"{operator.name} (see above)" if again else f"{_box(operator)}  {sizes(operator)}"
        yield f"{indent}{branch}─{condition(edge)}─> {what}"
        if not again:
            told.add(operator.name)
            yield from _below(chains, operator.name, f"{indent}{trunk}   ", told)


def _box(operator: Operator) -> str:
    return f"[{ARROW.join(operator.inside)}]" if operator.inside else operator.name


def condition(edge: Edge) -> str:
    """What an edge carries, if not everything."""
    if edge.share is not None:
        return f" {edge.share:.0%} "
    return "" if edge.when is None else " when "


def sizes(operator: Operator) -> str:
    """How many replicas and lanes an operator has."""
    replicas = f"{operator.minimum} to {operator.pool} replicas"
    number = lanes(operator)
    waiting = f"{number} lane" if number.split()[0] == "1" else f"{number} lanes"
    return f"{replicas}, {waiting}, {grouping(operator)}"


def lanes(operator: Operator) -> str:
    """How many lanes its events wait in."""
    if operator.router.shared_queue:
        return "1 shared"
    return str(lane_count(operator.pool, operator.lanes))


def grouping(operator: Operator) -> str:
    """How events are distributed, and by which column."""
    return f"{operator.router.name} by {operator.key}" if operator.key else operator.router.name


def plot(chains: Chains, target: Path) -> Path:
    """The same in a file, a PNG or an SVG by its name."""
    places = _places(chains)
    columns = 1 + max(column for column, _ in places.values())
    rows = 1 + max(row for _, row in places.values())
    width, height = columns * (BOX_WIDTH + GAP_X), rows * (BOX_HEIGHT + GAP_Y) + 0.6
    figure = new_figure(max(width, 5.0), max(height, 2.2))
    axes = figure.subplots()
    axes.set_xlim(-MARGIN, width - GAP_X + MARGIN)
    axes.set_ylim(-height + 0.6, 0.6)
    axes.axis("off")
    axes.set_title(chains.declared.name, loc="left")
    for edge in chains.topology.edges:
        _arrow(axes, edge, places)
    for node, place in places.items():
        _draw(axes, chains, node, *_corner(place))
    return save(figure, target)


def _places(chains: Chains) -> dict[str, tuple[int, int]]:
    """A column for every node, after all of its predecessors, and a row in it."""
    topology = chains.topology
    column: dict[str, int] = {}
    for node in topology.order:
        before = [column[edge.origin] + 1 for edge in topology.incoming[node]]
        column[node] = max(before, default=0)
    rows: dict[int, int] = {}
    places = {}
    for node in topology.order:
        row = rows.get(column[node], 0)
        rows[column[node]] = row + 1
        places[node] = column[node], row
    return places


def _corner(place: tuple[int, int]) -> tuple[float, float]:
    column, row = place
    return column * (BOX_WIDTH + GAP_X), -(row + 1) * (BOX_HEIGHT + GAP_Y) + GAP_Y


def _arrow(axes: Any, edge: Edge, places: dict[str, tuple[int, int]]) -> None:
    left, right = _corner(places[edge.origin]), _corner(places[edge.target])
    start = left[0] + BOX_WIDTH, left[1] + BOX_HEIGHT / 2
    end = right[0], right[1] + BOX_HEIGHT / 2
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": SOURCE})
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 0.08
    axes.text(*middle, condition(edge).strip(), ha="center", fontsize=7, color=SOURCE)


def _draw(axes: Any, chains: Chains, node: str, x: float, y: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    operator = chains.topology.by_name.get(node)
    colour = "white" if operator is None else CHAIN if operator.inside else SINGLE
    style = "round,pad=0.02,rounding_size=0.12"
    axes.add_patch(
        FancyBboxPatch((x, y), BOX_WIDTH, BOX_HEIGHT, style, facecolor=colour, edgecolor=SOURCE)
    )
    name = node if operator is None else ARROW.join(operator.inside or (node,))
    middle = x + BOX_WIDTH / 2
    above = BOX_HEIGHT * (0.62 if operator else 0.5)
    size = 9 if len(name) <= 24 else max(5, 9 * 24 / len(name))
    axes.text(middle, y + above, name, ha="center", va="center", fontsize=size)
    if operator:
        axes.text(
            middle, y + BOX_HEIGHT * 0.25, sizes(operator), ha="center", va="center", fontsize=5.5
        )
