"""The service beside a run: what it listens on, what it knows, and what people may switch to."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from elastream.cli.choices import model_named, trained_files
from elastream.cli.render.logs import tell
from elastream.control import Choices, ControlLoop, Cycle, Steered
from elastream.control.history import History
from elastream.engines.base import Engine
from elastream.policies import POLICIES, Policy
from elastream.predictors import Predictor
from elastream.predictors.cards import CARDS

if TYPE_CHECKING:
    from elastream.service.access import Access
    from elastream.service.live import Live

NEED_MORE = {"static", "oracle"}
"""Policies that cannot be made from their name alone."""


class Models(Mapping[str, Predictor]):
    """Every model that can be had, each loaded when it is first asked for."""

    def __init__(self, first: Predictor, trained: Sequence[str]) -> None:
        self._files = trained_files(trained)
        self._loaded = {first.name: first}
        self._names = [
            name
            for name, card in CARDS.items()
            if name in self._loaded
            or (card.installed and (name in self._files or not card.trained))
        ]
        self._names += self._loaded.keys() - set(self._names)

    def __getitem__(self, name: str) -> Predictor:
        if name not in self._loaded:
            self._loaded[name] = model_named(name, self._files)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def choices(
    policy: Policy,
    models: Models,
    sample: float,
    within: Callable[[Predictor, float], Predictor] = lambda model, td: model,
) -> Choices:
    """What a run may be switched to.

    Args:
        policy: The one that it starts with.
        models: The predictors.
        sample: The length of a sampling window, in seconds.
        within: Holds a predictor to what a length of the interval leaves it.
    """
    policies: dict[str, Callable[[], Policy]] = {
        name: POLICIES[name] for name in POLICIES if name not in NEED_MORE
    }
    policies[policy.name] = lambda: policy
    predictors = {name: lambda td, name=name: within(models[name], td) for name in models}
    return Choices(policies, predictors, shortest_td=sample)


def recorded_by(live: Live | None, history: History | None) -> Callable[[Cycle | Steered], object]:
    """Whoever wants to know hears of every cycle and every change."""
    recorders = [one.record for one in (live, history) if one is not None]

    def record(entry: Cycle | Steered) -> None:
        for one in recorders:
            one(entry)

    return record


@dataclass(frozen=True)
class RunService:
    """A place to listen, taken before anything starts, so that a mistake costs no time."""

    access: Access
    listening: socket.socket

    @classmethod
    def at(cls, host: str, port: int) -> RunService:
        """Listen there; nobody is answered before `beside`."""
        from elastream.service.access import Access
        from elastream.service.server import listen

        access = Access.at(host, os.environ)
        return cls(access, listen(host, port))

    @property
    def url(self) -> str:
        """Where it can be reached."""
        from elastream.service.server import url_of

        return url_of(self.listening)

    def follow(self, engine: Engine, sample: float) -> Live:
        """What is known of the engine's pipeline from now on; `sample` seconds are a window."""
        from elastream.service.live import Live

        live = Live(engine.topology, engine.clock.now, sample)
        engine.watch(live.watch)
        return live

    @contextmanager
    def beside(
        self,
        loop: ControlLoop,
        live: Live,
        engine: Literal["spark", "simulation", "attached"],
        look_back: int,
        models: Models,
    ) -> Iterator[None]:
        """Answer while the block runs."""
        from elastream.service.api import create_app
        from elastream.service.control_api import RunningPipeline
        from elastream.service.server import serving

        app = create_app(
            models,
            access=self.access,
            running=RunningPipeline(engine, live, loop.steering, look_back, loop.health),
        )
        with serving(app, self.listening, live.feed.close):
            tell(f"see and steer it at {self.url}", url=self.url)
            try:
                yield
            finally:
                live.show_health(loop.health())
                live.end()
