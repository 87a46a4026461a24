"""`elastream.attach`: scale the executors of an existing Structured Streaming query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from elastream.control import ControlLoop
from elastream.control.analyze import check_look_back
from elastream.control.history import History
from elastream.engines.executors.fleet import check_limits
from elastream.errors import InvalidInputError, MissingExtraError
from elastream.policies import Policy
from elastream.policies.guards import Guard
from elastream.predictors import Predictor
from elastream.running.choices import (
    Models,
    chosen_guards,
    chosen_policy,
    chosen_predictor,
    in_time,
    steering_choices,
)
from elastream.running.scaler import Scaler
from elastream.running.service import recorded_by, service_at

LOOK_BACK = 100
"""How many samples a forecast sees; a predictor that can use more gets more."""
LATENCY_SECONDS = 10.0
TARGET = 0.65
"""The share of its interval that a batch may take: its rows then wait no longer than those of the
busiest moment do anyway, with all executors."""

USUAL_GUARDS = ("trusted-batches", "lead-time-window")


def attach(
    query: Any,
    executors: tuple[int, int] = (1, 8),
    *,
    policy: str | Policy = "deadline",
    predictor: str | Predictor = "auto",
    latency: float = LATENCY_SECONDS,
    target: float = TARGET,
    td: float | None = None,
    look_back: int = LOOK_BACK,
    guards: Iterable[Guard | str] = USUAL_GUARDS,
    advice_only: bool = False,
    history: Path | str | None = None,
    serve: bool | int | str = False,
    trained: Mapping[str, Path] | None = None,
) -> Scaler:
    """Scale the executors of a streaming query, from now until `stop`.

    Args:
        query: What `writeStream.start()` returned.
        executors: The smallest and the largest number. Several queries of a session share them.
        policy: Decides how many: a name, or an object such as `elastream.policy("slots")`.
        predictor: Forecasts the input: a name, `NAME@URL` of a service, or an object such as
            `elastream.predictor("bigru", path=FILE)`.
        latency: The latency to keep if the query has no trigger interval, in seconds.
        target: The share of its interval that a batch may take.
        td: The time between decisions, in seconds. By default, half of the trigger interval, but
            at least 1.
        look_back: How many samples the predictor sees; each is `td` long.
        guards: Limits on the policy, such as `elastream.guard("cooldown", up=10, down=60)`, or
            their names. They replace the usual ones: nothing changes before the duration of
            batches can be predicted (`trusted-batches`), and executors stay for one lead time
            after they were last needed (`lead-time-window`).
        advice_only: Record plans, but do not apply them. This also works without a cluster.
        history: A file that keeps every decision and its reasons.
        serve: Serve a page where people can watch and steer it: True for port 8888, a port, or
            HOST:PORT. Queries of one program that name the same address share it, a page each.
        trained: Files of trained predictors, by name, that you can switch to.

    Returns:
        A handle: `status()`, `stop()`, `url`, and a context manager.

    Examples:
        With `advice_only=True` it works on this machine, too; leave that out on a cluster.

        >>> import elastream
        >>> spark = elastream.session()  # doctest: +SKIP
        >>> frame = spark.readStream.format("rate").load()  # doctest: +SKIP
        >>> query = frame.writeStream.format("noop").start()  # doctest: +SKIP
        >>> with elastream.attach(query, advice_only=True) as scaler:  # doctest: +SKIP
        ...     query.awaitTermination(1)
        False
        >>> query.stop()  # doctest: +SKIP
    """
    try:
        from elastream.engines.attached.engine import AttachedEngine
        from elastream.engines.attached.query import session_of
        from elastream.engines.attached.sharing import SharedExecutors
    except ImportError:
        raise MissingExtraError("attach", "spark") from None
    check_wishes(executors, latency, target, td)
    check_look_back(look_back)
    decides, forecasts = chosen_policy(policy), chosen_predictor(predictor)
    limits = chosen_guards(guards)
    session, name = session_of(query), str(query.id)
    with ExitStack() as undo:
        service = service_at(serve)
        if service:
            undo.callback(service.close)
        shared = SharedExecutors.join(session, name, executors, advice_only)
        undo.callback(shared.leave, name, restore=False)
        recorded = History(Path(history)) if history else None
        if recorded:
            undo.callback(recorded.close)
        engine = AttachedEngine(
            session,
            query,
            shared.fleet,
            objective=latency,
            target=target,
            sample=td,
            check=partial(shared.scale, name),
        )
        undo.callback(engine.close)
        live = service.follow(engine, engine.sample) if service else None
        models = Models(forecasts, trained or {})
        loop = ControlLoop(
            engine,
            decides,
            in_time(forecasts, engine.sample),
            td=engine.sample,
            guards=limits,
            look_back=look_back,
            advice_only=advice_only,
            choices=steering_choices(decides, models, in_time, shortest_td=engine.sample),
            record=recorded_by(live, recorded),
        )
        if service and live:
            undo.enter_context(service.beside(loop, live, "attached", look_back, models))
        close = undo.pop_all()

    def release(restore: bool) -> None:
        with close:  # Also when somebody does not wait until executors are restored.
            shared.leave(name, restore=restore)

    return Scaler(engine, loop, release, service.url if service else None)


def check_wishes(executors: Any, latency: float, target: float, td: float | None) -> None:
    """Raise what cannot be meant, before anything is looked at.

    >>> check_wishes((8, 1), latency=10.0, target=0.65, td=None)
    Traceback (most recent call last):
    elastream.errors.InvalidInputError: attach: executors=(8, 1): give the fewest and the most, ...
    """
    try:
        check_limits(executors)
    except InvalidInputError as error:
        raise InvalidInputError(f"attach: {error}") from None
    for name, seconds in (("latency", latency), ("td", td)):
        if seconds is not None and not 0 < seconds < math.inf:
            raise InvalidInputError(f"attach: {name}={seconds} must be a number of seconds above 0")
    if not 0 < target <= 1:
        raise InvalidInputError(f"attach: target={target} must be above 0 and at most 1")
