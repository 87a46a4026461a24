"""Functions that take longer than they need, so that elasticity shows on a small machine."""

from __future__ import annotations

import asyncio
import copy
import inspect
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from elastream.errors import InvalidInputError
from elastream.workloads.applications import Step


def with_service_time(
    step: Step, service_ms: float, sleep: Callable[[float], object] = time.sleep
) -> Step:
    """The same step, which waits this many milliseconds longer for every event.

    A waiting replica needs no CPU, so that the need for more replicas can be seen on a machine
    that has few cores. The wait is one sleep per call, that is, per batch: many short ones would
    take far longer. Calls of an `async` function wait at the same time.
    """
    if not (math.isfinite(service_ms) and service_ms >= 0):
        raise InvalidInputError(f"service_ms={service_ms} must be 0 or more milliseconds per event")
    if service_ms == 0:
        return step
    return replace(step, function=_slowed(step.function, service_ms / 1000, sleep))


def _slowed(function: Any, seconds: float, sleep: Callable[[float], object]) -> Any:
    """The same kind of function: the engine looks at its signature, and whether it is async.

    A class stays a class, of which every replica makes an object; and an object keeps what it has,
    also `setup` and `close`.
    """
    kind = function if isinstance(function, type) else type(function)
    if not inspect.isfunction(kind.__call__):
        return _waiting(function, seconds, sleep, batch_at=0)
    called = _waiting(kind.__call__, seconds, sleep, batch_at=1)
    slow = type(kind.__name__, (kind,), {"__slots__": (), "__call__": called})
    if kind is function:
        return slow
    made = copy.copy(function)
    object.__setattr__(made, "__class__", slow)
    return made


def _waiting(
    function: Callable[..., Any], seconds: float, sleep: Callable[[float], object], batch_at: int
) -> Callable[..., Any]:
    """Waits after every call, for as many events as were in it."""

    def wait_for(arguments: tuple[Any, ...]) -> float:
        batch = arguments[batch_at]
        return seconds * (1 if isinstance(batch, dict) else len(batch))

    @wraps(function)
    def waiting(*arguments: Any, **context: Any) -> Any:
        result = function(*arguments, **context)
        sleep(wait_for(arguments))
        return result

    @wraps(function)
    async def waiting_async(*arguments: Any, **context: Any) -> Any:
        result = await function(*arguments, **context)
        await asyncio.sleep(wait_for(arguments))
        return result

    return waiting_async if inspect.iscoroutinefunction(function) else waiting
