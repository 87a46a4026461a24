"""The applications of the PA-SPS evaluation: a pipeline, and how its operators behave.

What operators do to events is given as `functions`, by the operator's name; without one an
operator hands its batch on. `elastream.workloads.live` has functions that really do something. How
long operators take and where events go is known without running them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from elastream.core.behaviour import Behaviour
from elastream.core.pipeline import Pipeline
from elastream.core.topology import Topology


@dataclass(frozen=True, slots=True)
class Step:
    """What one operator does, as in `Operator`."""

    function: Callable[..., Any]
    setup: Callable[[], Any] | None = None
    teardown: Callable[[Any], Any] | None = None


Functions = Mapping[str, Step | Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Application:
    """A pipeline with the behaviour that a simulation of it needs."""

    topology: Topology
    behaviour: Behaviour


def unchanged(batch: Any) -> Any:
    """Pass a batch on as it is."""
    return batch


def step_of(functions: Functions | None, name: str) -> Step:
    """What the operator of this name does."""
    given = (functions or {}).get(name, unchanged)
    return given if isinstance(given, Step) else Step(given)


GROUPING = "load-aware"
"""How PA-SPS distributes events among replicas (its section 3.1)."""
STORM = "shuffle"
"""How DABS-Storm does where events take equally long (its section 7.3): as Storm does."""
UNEQUAL = (0.5, 1.0, 0.75, 0.25)
"""The cost of the operators of the authors' published application, relative to the costliest: each
works through an array of 50, 100, 75 or 25 thousand numbers."""


def twitter(
    execution_time: float = 1.317e-3, pool: int = 8, functions: Functions | None = None
) -> Application:
    """Tweets: four operators in a line (PA-SPS figure 7); 8 replicas of each carry the peak."""
    names = ("stop-words", "sentiment", "user-class", "store")
    return _line("twitter", "tweets", names, execution_time, pool, functions)


def twitter_unequal(
    execution_time: float = 1.317e-3, pool: int = 8, functions: Functions | None = None
) -> Application:
    """The same line with the unequal operators of the authors' application.

    The costliest takes `execution_time`, so that one replica of each processes as much as in
    `twitter`, and the others need fewer.
    """
    pipeline = Pipeline("twitter-unequal")
    previous = pipeline.source("tweets")
    names = ("stop-words", "sentiment", "user-class", "store")
    for name, part in zip(names, UNEQUAL, strict=True):
        _add(pipeline, name, previous, pool, part * execution_time, functions)
        previous = name
    return Application(pipeline.topology(), Behaviour())


def diamond(
    execution_time: float = 1.0e-3, pool: int = 8, functions: Functions | None = None
) -> Application:
    """Two branches that meet again (workflow 2 of DABS-Storm figure 1): each gets half."""
    pipeline = Pipeline("diamond")
    _add(pipeline, "split", pipeline.source("events"), pool, execution_time, functions, STORM)
    for branch in ("left", "right"):
        _add(pipeline, branch, (), pool, execution_time, functions, STORM)
        pipeline.connect("split", branch, share=0.5)
    _add(pipeline, "join", ("left", "right"), pool, execution_time, functions, STORM)
    return Application(pipeline.topology(), Behaviour())


def star(
    execution_time: float = 1.0e-3, pool: int = 8, functions: Functions | None = None
) -> Application:
    """Two operators lead into one, and two lead out of it (workflow 3 of DABS-Storm figure 1).

    Each of the first two gets half of the stream, and each of the last two all that the middle one
    puts out.
    """
    pipeline = Pipeline("star")
    events = pipeline.source("events")
    for name in ("in-1", "in-2"):
        _add(pipeline, name, (), pool, execution_time, functions, STORM)
        pipeline.connect(events, name, share=0.5)
    _add(pipeline, "hub", ("in-1", "in-2"), pool, execution_time, functions, STORM)
    for name in ("out-1", "out-2"):
        _add(pipeline, name, "hub", pool, execution_time, functions, STORM)
    return Application(pipeline.topology(), Behaviour())


def dns(
    execution_time: float = 1.0e-3, pool: int = 3, functions: Functions | None = None
) -> Application:
    """DNS traffic: four operators in a line (PA-SPS figure 12), 3 replicas of each at most."""
    names = ("parse", "features", "classify", "store")
    return _line("dns", "packets", names, execution_time, pool, functions)


def logs(
    execution_time: float = 1.317e-3, pool: int = 8, functions: Functions | None = None
) -> Application:
    """System logs: four operators in a line (PA-SPS figure 14), 8 replicas of each at most."""
    names = ("parse", "template", "severity", "store")
    return _line("logs", "lines", names, execution_time, pool, functions)


def twitter_complex(
    execution_time: float = 0.8e-3, pool: int = 5, functions: Functions | None = None
) -> Application:
    """News and opinions part and meet again: eight operators A to H (PA-SPS figure 11).

    B sends one event in five to C and the others to F; F sends one in ten to H and the others to
    G; what comes from H joins at G, and both branches end at E.
    """
    pipeline = Pipeline("twitter-complex")
    tweets = pipeline.source("tweets")
    for name in "ABCDEFGH":
        _add(pipeline, name, (), pool, execution_time, functions)
    for origin, target, share in (
        (tweets, "A", None),
        ("A", "B", None),
        ("B", "C", 0.2),
        ("B", "F", 0.8),
        ("C", "D", None),
        ("D", "E", None),
        ("F", "G", 0.9),
        ("F", "H", 0.1),
        ("H", "G", None),
        ("G", "E", None),
    ):
        pipeline.connect(origin, target, share=share)
    return Application(pipeline.topology(), Behaviour())


def _line(
    name: str,
    source: str,
    operators: tuple[str, ...],
    execution_time: float,
    pool: int,
    functions: Functions | None,
) -> Application:
    pipeline = Pipeline(name)
    previous = pipeline.source(source)
    for operator in operators:
        _add(pipeline, operator, previous, pool, execution_time, functions)
        previous = operator
    return Application(pipeline.topology(), Behaviour())


def _add(
    pipeline: Pipeline,
    name: str,
    after: str | tuple[str, ...],
    pool: int,
    execution_time: float,
    functions: Functions | None,
    grouping: str = GROUPING,
) -> None:
    step = step_of(functions, name)
    pipeline.add(
        step.function,
        name=name,
        after=after,
        pool=pool,
        grouping=grouping,
        execution_time=execution_time,
        setup=step.setup,
        teardown=step.teardown,
    )
