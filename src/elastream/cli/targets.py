"""From what a user types to what Spark is to run: a pipeline, and the events of its sources."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from elastream.core.behaviour import Behaviour
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.worker.deployment import send_by_value
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.errors import InvalidInputError
from elastream.workloads import LIVE_APPLICATIONS
from elastream.workloads.applications import Application
from elastream.workloads.choice import chosen_trace
from elastream.workloads.traces import Trace, evenly

Generator = Callable[[int, int], Any]


@dataclass(frozen=True)
class Target(Application):
    """A pipeline, and what makes the events of each source."""

    generators: Mapping[str, Generator]

    def sources(self, trace: Trace) -> dict[str, TraceSource]:
        """Every source plays the trace; several share it evenly."""
        rates = trace.rates / len(self.generators)
        return {
            name: TraceSource(make, trace.step, rates) for name, make in self.generators.items()
        }


def played(
    name: str, speed: float, scale: float, duration: float | None, fill_gaps: bool = False
) -> Trace:
    """The trace as fast and as high as asked, cut to the duration."""
    for option, value in (("--speed", speed), ("--scale", scale), ("--duration", duration or 1.0)):
        if not 0 < value < float("inf"):
            raise InvalidInputError(f"{option} {value:g}: it must be above 0")
    trace = chosen_trace(name, fill_gaps=fill_gaps)
    step = trace.step / speed
    values = scale * trace.rates * step
    if duration is not None:
        values = values[: max(int(np.ceil(duration / step)), 1)]
    return evenly(values, step)


def chosen_target(
    pipeline: str | None, app: str, pool: int, service_ms: float, folder: Path
) -> Target:
    """The application of that name, which stores into the state folder, or a user's pipeline."""
    if pipeline is not None:
        return _from_file(pipeline)
    folder.mkdir(parents=True, exist_ok=True)
    known = {"execution_time": service_ms / 1000} if service_ms else {}
    made = LIVE_APPLICATIONS[app](folder / f"{app}.db", service_ms=service_ms, pool=pool, **known)
    return Target(made.topology, made.behaviour, made.generators)


def _from_file(target: str) -> Target:
    file, colon, name = target.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise InvalidInputError(f"{target}: name a pipeline as FILE.py:NAME")
    module = _loaded(Path(file))
    declared = getattr(module, name, None)
    if not isinstance(declared, Pipeline):
        raise InvalidInputError(f"{file}: {name!r} is no elastream.Pipeline")
    generators = getattr(module, "sources", None)
    if not isinstance(generators, Mapping):
        raise InvalidInputError(
            f"{file}: it needs a dictionary 'sources' from the name of each source to a function "
            "make(first, count) that returns a pyarrow.Table of events"
        )
    return Target(declared.topology(), Behaviour(), generators)


def _loaded(path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidInputError(f"{path}: there is no such file")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    send_by_value(module)
    return module
