"""A run on Spark as the command line shows it: the live table while it runs, then what it did."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elastream.cli.render.logs import report
from elastream.cli.render.progress import watched
from elastream.cli.targets import Target
from elastream.control.run import Result, Run
from elastream.control.windows import InWindows
from elastream.core.stats import IntervalStats
from elastream.errors import described
from elastream.running import PipelineRun, run, session
from elastream.running.interrupts import ended_by_sigterm
from elastream.workloads.traces import evenly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """Where and how a run works."""

    state: str | Path
    master: str | None = None
    serve: bool | str = False
    duration: float | None = None
    """For sources that never end."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `elastream.run`."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Further settings of Spark."""


@ended_by_sigterm()
def run_on_spark(
    asked: Run, target: Target, place: Place, say_last: Callable[[str], None] = report
) -> tuple[Result, PipelineRun]:
    """Run it with the live table, until its sources end or somebody stops it.

    SIGTERM drains it, as Ctrl-C does.

    Args:
        asked: What to run, and how to scale it.
        target: Its pipeline and its events.
        place: Where and how it works.
        say_last: Called with the line about events that were set aside, if there are any.
    """
    report(f"starting {target.topology} on Spark, state in {place.state}")
    spark = session(target.topology, master=place.master, config=place.config)
    try:
        sources, plays_trace = target.sources(spark, asked.trace)
        going = run(
            target.topology,
            sources,
            state=place.state,
            policy=asked.policy,
            predictor=asked.predictor,
            td=asked.td,
            look_back=asked.look_back,
            guards=asked.guards,
            outputs=target.outputs,
            duration=None if plays_trace else place.duration,
            session=spark,
            serve=place.serve,
            say=report,
            say_last=say_last,
            **place.settings,
        )
        windows: list[IntervalStats] = []
        going.loop.engine.watch(InWindows(asked.throughput_window, windows.append))
        if going.url:
            report(f"watch and steer it at {going.url}", url=going.url)
        if target.sinks is not None:
            _start_sinks(target, going)
        cycles = tuple(watched(going.follow(), going.loop))
    finally:
        _stop(spark)
    if not plays_trace:
        samples = [sample for cycle in cycles if cycle.stats for sample in cycle.stats.samples]
        asked = replace(asked, trace=evenly(np.array(samples or [0.0]), going.sample))
    return Result(asked, cycles, tuple(windows), going.topology), going


def _stop(spark: SparkSession) -> None:
    """Stop it; one that is gone has stopped, and why is told elsewhere.

    The queries of `sinks` come first: Spark logs a stack trace for each that it takes down itself.
    """
    try:
        for query in spark.streams.active:
            query.stop()
        spark.stop()
    except Exception as error:
        log.warning("Spark could not be stopped: %s", described(error))


def _start_sinks(target: Target, going: PipelineRun) -> None:
    assert target.sinks is not None
    try:
        target.sinks(going)
    except BaseException:
        going.stop()
        raise
