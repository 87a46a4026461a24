"""The service of a run: its address, and what it shows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from elastream.control import ControlLoop, Cycle, Steered
from elastream.control.history import History
from elastream.engines.base import Engine
from elastream.errors import InvalidInputError, MissingExtraError
from elastream.predictors import Predictor

if TYPE_CHECKING:
    from elastream.service.access import Access
    from elastream.service.address import Seat
    from elastream.service.live import Live

LOOPBACK, PORT = "127.0.0.1", 8888


def recorded_by(live: Live | None, history: History | None) -> Callable[[Cycle | Steered], object]:
    """Pass every cycle and every change on to all listeners."""
    recorders = [one.record for one in (live, history) if one is not None]

    def record(entry: Cycle | Steered) -> None:
        with ExitStack() as every:  # Also after one that fails; the first added is called last.
            for one in reversed(recorders):
                every.callback(one, entry)

    return record


@dataclass(frozen=True)
class RunService:
    """An address to listen on, taken before anything starts, so that mistakes show at once."""

    access: Access
    seat: Seat

    @classmethod
    def at(cls, host: str, port: int) -> RunService:
        """Listen there; requests are answered from `beside` on.

        Runs of this program that ask for the same address share it, and their pages link to each
        other.
        """
        try:
            from elastream.service.access import Access
            from elastream.service.address import Address
        except ImportError:
            raise MissingExtraError("the page of a run", "serve") from None
        access = Access.at(host, os.environ)
        return cls(access, Address.seat(host, port))

    @property
    def url(self) -> str:
        """The address of the page."""
        return self.seat.url

    def close(self) -> None:
        """Release the address, if nothing was ever served there."""
        self.seat.leave()

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
        models: Mapping[str, Predictor],
    ) -> Iterator[None]:
        """Answer while the block runs."""
        from elastream.service.api import create_app
        from elastream.service.control_api import RunningPipeline

        app = create_app(
            models,
            access=self.access,
            running=RunningPipeline(engine, live, loop.steering, look_back, loop.health),
            runs=self.seat.address.listed,
        )
        with self.seat.serving(live.topology.name, loop.health, app, live.feed.close):
            try:
                yield
            finally:
                live.show_health(loop.health())
                live.end()


def service_at(serve: bool | int | str) -> RunService | None:
    """The service that a program asked for with `serve=`, if it asked for one."""
    if serve is False:
        return None
    if serve is True:
        return RunService.at(LOOPBACK, PORT)
    return RunService.at(*_host_and_port(str(serve)))


def _host_and_port(serve: str) -> tuple[str, int]:
    """The address in a port, or in HOST:PORT.

    >>> _host_and_port("9000"), _host_and_port("0.0.0.0:9000"), _host_and_port("[::1]:9000")
    (('127.0.0.1', 9000), ('0.0.0.0', 9000), ('::1', 9000))
    """
    host, _, port = serve.rpartition(":")
    if not port.isdigit():
        raise InvalidInputError(f"serve={serve!r}: give True, a port, or HOST:PORT")
    return host.strip("[]") or LOOPBACK, int(port)
