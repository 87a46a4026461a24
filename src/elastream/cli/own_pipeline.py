"""A user's own pipeline, named as FILE.py:NAME, and what its module says about it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from elastream.cli.users_code import users_code
from elastream.core.pipeline import Pipeline
from elastream.core.topology import Topology
from elastream.errors import InvalidInputError, UnknownNameError
from elastream.importing import only_importing

Sources = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True)
class OwnPipeline:
    """What a module declares."""

    module: ModuleType
    topology: Topology
    sources: Sources | None
    """None if it declares none: a simulation needs no events."""

    @classmethod
    def named(cls, target: str) -> OwnPipeline:
        """Import the module, and find the pipeline in it."""
        file, colon, name = target.rpartition(":")
        if not colon or not file.endswith(".py") or not name.isidentifier():
            raise InvalidInputError(f"{target}: name a pipeline as FILE.py:NAME")
        module = _imported(Path(file))
        pipelines = [each for each, of in vars(module).items() if isinstance(of, Pipeline)]
        if pipelines and name not in vars(module):
            raise UnknownNameError(f"pipeline in {file}", name, pipelines)
        declared = getattr(module, name, None)
        if not isinstance(declared, Pipeline):
            raise InvalidInputError(f"{file}: {name!r} is not an elastream.Pipeline")
        given = getattr(module, "sources", None)
        usable = isinstance(given, Mapping) or callable(given)
        return cls(module, declared.topology(), given if usable else None)

    @property
    def makers(self) -> dict[str, Callable[[int, int], Any]]:
        """The functions that make the events of sources, of those that have one."""
        return makers_of(self.sources)


def makers_of(sources: Sources | None) -> dict[str, Callable[[int, int], Any]]:
    """The functions among what feeds sources; nothing before there is a session to ask with."""
    given = sources if isinstance(sources, Mapping) else {}
    return {name: of for name, of in given.items() if callable(of)}


def initial_from(options: Sequence[str], topology: Topology) -> dict[str, int]:
    """Active replicas at the start, as a user types them: OPERATOR=COUNT, or COUNT for all.

    >>> pipeline = Pipeline("orders")
    >>> _ = pipeline.add(len, name="price", after=pipeline.source("orders"), pool=4)
    >>> initial_from(["price=3"], pipeline.topology()), initial_from(["2"], pipeline.topology())
    ({'price': 3}, {'price': 2})
    """
    found: dict[str, int] = {}
    for option in options:
        name, _, count = option.rpartition("=")
        if not count.isdigit():
            raise InvalidInputError(f"--initial {option}: write OPERATOR=COUNT, or COUNT for all")
        if name and name not in topology.by_name:
            raise UnknownNameError("operator in --initial", name, topology.by_name)
        found |= dict.fromkeys([name] if name else topology.by_name, int(count))
    for name, replicas in found.items():
        least, most = topology.by_name[name].minimum, topology.by_name[name].pool
        if not least <= replicas <= most:
            raise InvalidInputError(
                f"--initial: {replicas} replicas of {name!r}: give {least} to {most}"
            )
    return found


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidInputError(f"{path}: there is no such file")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))  # As `python FILE.py` does.
    with only_importing(), users_code("it cannot be imported"):
        spec.loader.exec_module(module)
    return module
