"""The three topologies of DABS-Storm's evaluation (section 7.2).

A sensitive operator takes as long as the value of an event says. Values follow a Zipf law with a
skew of 1.5, and their execution times are spread evenly up to 64 times the shortest, in an order
that has nothing to do with how frequent they are.
"""

from __future__ import annotations

import numpy as np

from elastream.core.behaviour import Behaviour, OperatorBehaviour
from elastream.core.pipeline import Pipeline, Settings
from elastream.core.service_times import ByValue, Fixed, zipf
from elastream.workloads.applications import Application, Functions, step_of

VALUES, SKEW, SPREAD = 256, 1.5, 64
QUICK = 0.1
"""The time of the other operators, as a share of the observed one's mean."""


def simple_insensitive(
    execution_time: float = 8.0e-3, pool: int = 10, functions: Functions | None = None
) -> Application:
    """Source, one operator that takes equally long for all events, and an end (figure 9a)."""
    return _simple("insensitive", Fixed(execution_time), pool, functions)


def simple_sensitive(
    execution_time: float = 8.0e-3, pool: int = 10, functions: Functions | None = None
) -> Application:
    """The same with an operator whose time depends on the value (figure 9b)."""
    return _simple("sensitive", by_value(execution_time), pool, functions)


def complex_sensitive(
    execution_time: float = 8.0e-3, pool: int = 10, functions: Functions | None = None
) -> Application:
    """Opinions by city and by age: a filter, two branches, and a store (figure 10).

    The dispatcher leaves out one opinion in five. The analyzers put out fewer subgroups than they
    get opinions.
    """
    pipeline = Pipeline("complex-sensitive")
    opinions = pipeline.source("opinions")
    quick = Fixed(QUICK * execution_time)
    parts: dict[str, tuple[str | tuple[str, ...], OperatorBehaviour]] = {
        "dispatcher": (opinions, OperatorBehaviour(quick, selectivity=0.8)),
        "sensitive": ("dispatcher", OperatorBehaviour(by_value(execution_time))),
        "city-analyzer": ("sensitive", OperatorBehaviour(quick, selectivity=0.3)),
        "age": ("dispatcher", OperatorBehaviour(Fixed(execution_time / 2))),
        "age-analyzer": ("age", OperatorBehaviour(quick, selectivity=0.3)),
        "persister": (("city-analyzer", "age-analyzer"), OperatorBehaviour(quick)),
    }
    for name, (after, of) in parts.items():
        _add(pipeline, name, after, of, pool, functions)
    return Application(pipeline.topology(), Behaviour({k: of for k, (_, of) in parts.items()}))


def by_value(mean: float) -> ByValue:
    """Zipf values whose execution times have this mean, in seconds."""
    chances = zipf(VALUES, SKEW)
    ranks = np.random.default_rng(0).permutation(np.linspace(1, SPREAD, VALUES))
    costs = ranks * (mean / float(np.dot(ranks, chances)))
    return ByValue(tuple(costs.tolist()), chances)


def _simple(
    kind: str, time: Fixed | ByValue, pool: int, functions: Functions | None
) -> Application:
    pipeline = Pipeline(f"simple-{kind}")
    source = pipeline.source("source")
    observed, end = OperatorBehaviour(time), OperatorBehaviour(Fixed(QUICK * time.mean))
    _add(pipeline, kind, source, observed, pool, functions)
    _add(pipeline, "finalize", kind, end, pool, functions)
    return Application(pipeline.topology(), Behaviour({kind: observed, "finalize": end}))


def _add(
    pipeline: Pipeline,
    name: str,
    after: str | tuple[str, ...],
    of: OperatorBehaviour,
    pool: int,
    functions: Functions | None,
) -> None:
    """An operator; one that is sensitive gets the grouping that looks at values."""
    step = step_of(functions, name)
    settings: Settings = {
        "pool": pool,
        "execution_time": of.time.mean,
        "setup": step.setup,
        "teardown": step.teardown,
    }
    if isinstance(of.time, ByValue):
        settings |= {"grouping": "osg", "key": "value"}
    pipeline.add(step.function, name=name, after=after, **settings)
