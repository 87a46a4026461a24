"""Functions that take longer than they need, so that elasticity shows on a small machine."""

from __future__ import annotations

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
    that has few cores. The wait is one sleep per batch: many short ones would take far longer.
    """
    if not (math.isfinite(service_ms) and service_ms >= 0):
        raise InvalidInputError(f"service_ms={service_ms} must be 0 or more milliseconds per event")
    if service_ms == 0:
        return step

    @wraps(step.function)
    def waiting(batch: Any, *resource: Any, **context: Any) -> Any:
        result = step.function(batch, *resource, **context)
        sleep(len(batch) * service_ms / 1000)
        return result

    return replace(step, function=waiting)
