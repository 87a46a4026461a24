"""`elastream.run`: from a pipeline and its sources to a run in the background."""

from __future__ import annotations

import logging
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elastream.control import ControlLoop
from elastream.control.analyze import check_look_back
from elastream.control.beginning import Beginning
from elastream.control.history import HISTORY, History
from elastream.control.history_reader import last_replicas
from elastream.control.steering import check_td
from elastream.core.chains import Chains
from elastream.core.pipeline import Pipeline
from elastream.core.topology import Topology
from elastream.engines.base import WhenFull
from elastream.engines.executors.fleet import check_limits
from elastream.errors import InvalidInputError, MissingExtraError
from elastream.importing import check_not_importing
from elastream.policies import Policy
from elastream.policies.guards import Guard
from elastream.predictors import Predictor
from elastream.running.choices import (
    SHORTEST_TD,
    Models,
    check_times,
    chosen_guards,
    chosen_policy,
    chosen_predictor,
    in_time,
    steering_choices,
)
from elastream.running.handle import DRAIN_SECONDS, Ending, PipelineRun, Surroundings, to_stderr
from elastream.running.interrupts import plain_interrupts
from elastream.running.service import recorded_by, service_at
from elastream.running.state import folder_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from elastream.engines.spark.sources import EventSource

log = logging.getLogger(__name__)

LATE_SECONDS = 0.25
"""On a busy machine, the last events of a trace are sent a little late."""


def run(
    pipeline: Pipeline | Topology,
    sources: Mapping[str, Any],
    *,
    state: str | Path | None = None,
    checkpoint: str | Path | None = None,
    policy: Policy | str = "slo",
    predictor: Predictor | str = "auto",
    td: float | None = None,
    sample: float = 1.0,
    look_back: int = 100,
    guards: Iterable[Guard | str] = (),
    outputs: Mapping[str, str | StructType] | None = None,
    initial: Mapping[str, int] | None = None,
    duration: float | None = None,
    session: SparkSession | None = None,
    executors: tuple[int, int] | None = None,
    serve: bool | int | str = False,
    queue_size: int = 100_000,
    on_full: WhenFull | str = WhenFull.BLOCK,
    on_error: str = "set-aside",
    fail_on_dead_letters: int | None = None,
    drain_seconds: float = DRAIN_SECONDS,
    trained: Mapping[str, Path] | None = None,
    say: Callable[[str], None] = to_stderr,
    say_last: Callable[[str], None] | None = None,
) -> PipelineRun:
    """Run a pipeline on Spark, in the background, scaled by a policy.

    It returns as soon as every replica is ready; on a cluster with fewer task slots than replicas,
    as soon as the sources and the minimum of every operator are. The run ends when all its sources
    have ended, on Ctrl-C, or when you end it: see `PipelineRun`. Ctrl-C before `run` returns stops
    whatever has been started, and raises `KeyboardInterrupt`.

    Args:
        pipeline: The pipeline to run.
        sources: Where the events of each source come from: a streaming DataFrame; an iterable of
            batches, each a `pyarrow.Table`, a `pandas.DataFrame` or a list of rows; or
            `elastream.replay(make, "spiky")`, which makes events at the rates of a trace.
        state: The folder or URL where the run keeps its state. Another run with the same state
            resumes where this one stopped. By default, a new temporary folder.
        checkpoint: If the state is on Kafka, where Spark records how far it has read DataFrames: a
            folder or URL that survives this machine, such as `hdfs://HOST/FOLDER`.
        policy: A name, or an object such as `elastream.slo("250 ms")`, which keeps that latency, or
            `elastream.policy("static", replicas=4)`.
        predictor: A name, or an object such as `elastream.predictor("bigru", path=FILE)`.
        td: The length of a control interval, in seconds. The default depends on the policy: 0.25
            for `slo`, 30 for the others.
        sample: The length of a sampling window, in seconds; forecasts are made from these windows.
        look_back: How many samples the predictor sees.
        guards: Limits on the policy, such as `elastream.guard("cooldown", up=10, down=60)`.
        outputs: The operators whose output you read with `run[operator]`, and the schema of each.
        initial: Active replicas of operators at the start. The default is what an earlier run with
            the same state ended with; or else, for operators that declare an `execution_time`, what
            the policy wants for the first rate of `elastream.replay`; or else half of the pool. The
            policy `static` starts with its fixed number.
        duration: Stop after this many seconds.
        session: Your Spark session. By default, that of your DataFrames, or a new one on this
            machine.
        executors: On a cluster, the smallest and the largest number of executors. They then follow
            the load, too, requested as far ahead as one takes to start. By default, their number is
            fixed.
        serve: Serve a page where people can watch and steer the run: True for port 8888, a port,
            or HOST:PORT. Runs of one program that name the same address share it.
        queue_size: How many events may wait for an operator.
        on_full: What happens when a queue is full: `"block"` makes its producers wait, back to the
            source; `"drop"` loses events.
        on_error: What happens when an operator raises: `"set-aside"` keeps the failed events as
            dead letters and continues with the others, and only if a function failed on every event
            does the run end with an error; `"fail"` ends it at the first one.
        fail_on_dead_letters: End the run with an error once this many events have been set aside,
            also while it drains.
        drain_seconds: How long draining may take.
        trained: Files of trained predictors, by name, that you can switch the run to.
        say: Called with the few lines that are meant for the person who started the program. By
            default, they go to standard error.
        say_last: Called instead of `say` with the last line, which is about set-aside events.

    Returns:
        A handle with which you watch, steer and end the run.

    Examples:
        >>> import elastream
        >>> pipeline = elastream.Pipeline("orders")
        >>> orders = pipeline.source("orders")
        >>> @pipeline.operator(after=orders, pool=2)
        ... def price(row: dict) -> dict:
        ...     return {"id": row["id"], "total": 19.9 * row["pieces"]}
        >>> run = elastream.run(pipeline, {"orders": [[{"id": 1, "pieces": 3}]]})  # doctest: +SKIP
        >>> run.await_termination()  # doctest: +SKIP
        True
        >>> run.status().events_out  # doctest: +SKIP
        1.0
    """
    check_not_importing("elastream.run")
    topology = pipeline.topology() if isinstance(pipeline, Pipeline) else pipeline
    chosen, model = chosen_policy(policy), chosen_predictor(predictor)
    limits = chosen_guards(guards)
    interval = chosen.td if td is None else td
    check_times(sample=sample, duration=duration)
    check_td(interval, SHORTEST_TD)
    check_look_back(look_back)
    if executors is not None:
        check_limits(executors)
    if fail_on_dead_letters is not None and fail_on_dead_letters < 1:
        raise InvalidInputError(f"fail_on_dead_letters={fail_on_dead_letters}: give 1 or more")
    place = state if state is not None else tempfile.mkdtemp(prefix="elastream-")
    with plain_interrupts(), ExitStack() as undo:
        service = service_at(serve)
        if service is not None:
            undo.callback(service.close)
        try:
            from elastream.engines.spark.backends import open_backend
            from elastream.engines.spark.driver.engine import SparkEngine
            from elastream.engines.spark.sources import source_of
        except ImportError:
            raise MissingExtraError("running on Spark", "spark") from None
        feeds = {name: source_of(name, given) for name, given in sources.items()}
        backend = open_backend(place, checkpoint)
        recording = folder_of(backend) / HISTORY
        began = time.monotonic()
        engine = SparkEngine(
            topology,
            feeds,
            backend,
            session,
            outputs=outputs,
            queue_size=queue_size,
            on_full=on_full,
            on_error=on_error,
            sample=sample,
            initial=_beginning(topology, feeds, interval, recording).replicas(chosen, limits)
            | dict(initial or {}),
            executors=executors,
            say=say,
        )
        undo.callback(engine.close)
        warm_up = time.monotonic() - began
        history = History(recording)
        undo.callback(history.close)
        live = service.follow(engine, sample) if service else None
        models = Models(model, trained or {})
        loop = ControlLoop(
            engine,
            chosen,
            in_time(model, interval),
            td=interval,
            guards=limits,
            look_back=look_back,
            choices=steering_choices(chosen, models, in_time),
            record=recorded_by(live, history),
        )
        if service and live:
            undo.enter_context(service.beside(loop, live, "spark", look_back, models))
        around = Surroundings(
            state=str(place),
            history=recording,
            url=service.url if service else None,
            warm_up=warm_up,
            sample=sample,
            close=undo.pop_all(),
            say=say,
            say_last=say_last,
        )
    until, fed = _ending(feeds, duration, engine)
    ending = Ending(until, fed, fail_on_dead_letters or inf, drain_seconds)
    return PipelineRun(engine, loop, ending, around)


def session(
    *pipelines: Pipeline | Topology,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """A Spark session with enough task slots to run these pipelines at the same time.

    Every replica is a long-lived Spark task, so it needs its own slot. Under `spark-submit`, you
    get the submitted session with its settings. Where you have set nothing else, `session` sets
    `spark.sql.shuffle.partitions=1` and `spark.task.maxFailures=8`, among others.

    Args:
        pipelines: What will run in it. There is also room for DataFrames as sources and outputs.
        master: Spark's master URL. By default, this machine.
        config: Further Spark settings, such as `{"spark.jars.packages": ...}`.

    Examples:
        >>> import elastream
        >>> pipeline = elastream.Pipeline("orders")
        >>> _ = pipeline.add(len, name="count", after=pipeline.source("orders"), pool=2)
        >>> spark = elastream.session(pipeline)  # doctest: +SKIP
        >>> spark.readStream.format("rate").load().isStreaming  # doctest: +SKIP
        True
    """
    check_not_importing("elastream.session")
    try:
        from elastream.engines.spark.driver.preflight import least_slots, slots_for
        from elastream.engines.spark.driver.session import new_session
    except ImportError:
        raise MissingExtraError("running on Spark", "spark") from None
    topologies = [of.topology() if isinstance(of, Pipeline) else of for of in pipelines]
    slots = sum(slots_for(of, len(of.sources), len(of.operators)) for of in topologies)
    # A session that exists may have room for only one generation, and a cluster for some of its
    # workers.
    needed = sum(slots_for(of, generations=1) for of in topologies)
    least = sum(map(least_slots, topologies))
    with plain_interrupts():
        return new_session(max(slots, 1), master, config, max(needed, 1), max(least, 1))


def _beginning(
    topology: Topology, feeds: Mapping[str, EventSource], td: float, recording: Path
) -> Beginning:
    """What the declaration, the sources and the history of earlier runs say about the start."""
    from elastream.engines.spark.worker.trace_player import TraceSource

    runs = Chains.planned(topology).topology
    known = {name: of.execution_time for name, of in runs.by_name.items()}
    return Beginning(
        runs,
        shares={(e.origin, e.target): 1.0 if e.share is None else e.share for e in runs.edges},
        execution_times={name: each for name, each in known.items() if each is not None},
        td=td,
        rates={
            name: float(of.rates[: max(math.ceil(td / of.step), 1)].mean())
            for name, of in feeds.items()
            if isinstance(of, TraceSource)
        },
        earlier=last_replicas(recording),
    )


def _ending(
    feeds: Mapping[str, EventSource], duration: float | None, engine: Any
) -> tuple[float, Callable[[], bool] | None]:
    """When a run ends by itself: traces by the clock, iterables at their end, DataFrames never."""
    from elastream.engines.spark.dataframes.feeds import DataFrameSource
    from elastream.engines.spark.driver.batches import BatchSource
    from elastream.engines.spark.worker.trace_player import TraceSource

    if duration is not None:
        return duration, None
    if any(isinstance(of, DataFrameSource) for of in feeds.values()):
        return inf, None
    traces = [of.step * len(of.rates) for of in feeds.values() if isinstance(of, TraceSource)]
    until = max(traces) + LATE_SECONDS if traces else 0.0
    if any(isinstance(of, BatchSource) for of in feeds.values()):
        return until, lambda: bool(engine.batches_ended)
    return until, None
