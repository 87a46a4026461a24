"""Names that users type, and what they stand for.

An entry is the path of a factory, `"package.module:attribute"`, imported when its name is first
asked for: listing what there is costs nothing, and an optional dependency is only needed by those
who use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar, cast

from elastream.errors import UnknownNameError

T = TypeVar("T")


class Catalog(Mapping[str, Callable[..., T]], Generic[T]):
    """A read-only mapping from a name to the factory of what it names."""

    def __init__(self, kind: str, paths: Mapping[str, str]) -> None:
        self.kind = kind
        self._paths = dict(paths)

    def __getitem__(self, name: str) -> Callable[..., T]:
        if name not in self._paths:
            raise UnknownNameError(self.kind, name, self._paths)
        module, _, attribute = self._paths[name].partition(":")
        return cast(Callable[..., T], getattr(import_module(module), attribute))

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, name: object) -> bool:
        return name in self._paths
