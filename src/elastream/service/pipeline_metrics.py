"""What a pipeline does, for Prometheus: every name, its unit, its labels and its meaning.

`METRICS` is the list; docs/metrics.md shows it, and a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate, chain
from typing import Any, NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from elastream.control.expectation import arrival_rate
from elastream.control.problems import Problems
from elastream.core.health import State
from elastream.core.stats import IntervalStats
from elastream.service.backlog import Backlog
from elastream.service.control_api import RunningPipeline
from elastream.service.forecast_state import ForecastState
from elastream.service.totals import BUCKETS, Totals


class Described(NamedTuple):
    """What a metric means."""

    kind: Callable[..., Any]
    labels: tuple[str, ...]
    meaning: str


def _gauge(meaning: str, *labels: str) -> Described:
    return Described(GaugeMetricFamily, ("pipeline", *labels), meaning)


def _counter(meaning: str, *labels: str) -> Described:
    return Described(CounterMetricFamily, ("pipeline", *labels), meaning)


METRICS = {
    "elastream_health": _gauge("1 for the state that the run is in, 0 for all others.", "state"),
    "elastream_input_events": _counter("Events that arrived at the sources."),
    "elastream_input_rate_events_per_second": _gauge(
        "Events that arrived in the last sampling window, per second."
    ),
    "elastream_forecast_rate_events_per_second": _gauge(
        "Events forecast for the current interval, per second."
    ),
    "elastream_source_held_events": _gauge(
        "Events that a source holds back because the pipeline is full.", "source"
    ),
    "elastream_received_events": _counter("Events that an operator received.", "operator"),
    "elastream_processed_events": _counter("Events that an operator processed.", "operator"),
    "elastream_emitted_events": _counter("Events that an operator emitted.", "operator"),
    "elastream_dropped_events": _counter("Events that an operator lost.", "operator"),
    "elastream_set_aside_events": _counter(
        "Events that were set aside because the operator failed on them.", "operator"
    ),
    "elastream_failures_events": _counter(
        "Events that were set aside, by error; numbers in errors are left out.", "operator", "error"
    ),
    "elastream_queue_events": _gauge("Events waiting for an operator.", "operator"),
    "elastream_queue_oldest_seconds": _gauge(
        "How long the oldest waiting event of an operator has waited, in seconds.", "operator"
    ),
    "elastream_source_lag_seconds": _gauge(
        "How long the oldest event that a source holds back has been held, in seconds.", "source"
    ),
    "elastream_replicas_active": _gauge("Active replicas of an operator.", "operator"),
    "elastream_replicas_draining": _gauge(
        "Replicas that were turned off but are still finishing work.", "operator"
    ),
    "elastream_replicas_pending": _gauge(
        "Replicas that are planned but not running yet.", "operator"
    ),
    "elastream_replicas_dead": _gauge(
        "Planned replicas that have been silent for too long.", "operator"
    ),
    "elastream_replicas_stalled": _gauge(
        "Replicas that have been busy with one unit for unusually long.", "operator"
    ),
    "elastream_replicas_restarted": _counter("Replicas that were replaced.", "operator"),
    "elastream_replicas_pool": _gauge("Replicas in the pool of an operator.", "operator"),
    "elastream_executors": _gauge("Executors of the cluster that are there."),
    "elastream_executors_wanted": _gauge("Executors that have been asked for, if they can be."),
    "elastream_executor_seconds": _counter("What the executors there add up to, in seconds."),
    "elastream_utilization_ratio": _gauge(
        "Share of their time that active replicas spent in the operator, 0 to 1.", "operator"
    ),
    "elastream_latency_seconds": Described(
        HistogramMetricFamily,
        ("pipeline",),
        "Latency of events from a source to the end, in seconds.",
    ),
    "elastream_decisions": _counter("Cycles of the control loop, by outcome.", "outcome"),
    "elastream_forecast_fallbacks": _counter(
        "Forecasts by a fallback model, because the chosen one failed or was too slow."
    ),
    "elastream_steering_changes": _counter("Changes made by people, by who made them.", "who"),
    "elastream_interval_seconds": _gauge("Length of the control interval, in seconds."),
    "elastream_paused": _gauge("1 while scaling is paused, else 0."),
    "elastream_advice_only": _gauge("1 while plans are recorded but not applied, else 0."),
}

Values = Iterator[tuple[str, tuple[str, ...], float]]
"""The name of a metric, its labels after the first, and the value."""


class PipelineCollector(Collector):
    """Reads everything only when Prometheus asks."""

    def __init__(self, running: RunningPipeline) -> None:
        self._live = running.live
        self._steering = running.steering
        self._health = running.health

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        families = {
            name: of.kind(name, of.meaning, labels=of.labels) for name, of in METRICS.items()
        }
        pipeline = self._live.topology.name
        with self._live.reading() as (totals, forecast, problems, backlog):
            for name, labels, value in chain(
                self._values(totals, forecast), _problems(problems), _backlog(backlog)
            ):
                families[name].add_metric((pipeline, *labels), value)
            self._add_latency(families["elastream_latency_seconds"], pipeline, totals)
        yield from families.values()

    def describe(self) -> Iterator[Metric]:
        """The metrics without values, so that registering reads nothing."""
        return (of.kind(name, of.meaning, labels=of.labels) for name, of in METRICS.items())

    def _values(self, totals: Totals, forecast: ForecastState) -> Values:
        settings, health = self._steering.settings, self._health()
        for state in State:
            yield "elastream_health", (state.value,), state is health.state
        yield "elastream_interval_seconds", (), settings.td
        yield "elastream_paused", (), settings.paused
        yield "elastream_advice_only", (), settings.advice_only
        yield "elastream_input_events", (), totals.arrived
        yield "elastream_forecast_fallbacks", (), forecast.fallbacks
        for outcome, count in totals.outcomes.items():
            yield "elastream_decisions", (outcome,), count
        for who, count in totals.changes.items():
            yield "elastream_steering_changes", (who,), count
        for name, operator in self._live.topology.by_name.items():
            yield "elastream_replicas_pool", (name,), operator.pool
            for counted, events in totals.operators[name].items():
                yield f"elastream_{counted}_events", (name,), events
        if totals.executor_seconds is not None:
            yield "elastream_executor_seconds", (), totals.executor_seconds
        if forecast.expected is not None:
            yield "elastream_forecast_rate_events_per_second", (), forecast.expected.rate
        if totals.window is not None:
            yield from _newest(totals.window)

    def _add_latency(self, family: HistogramMetricFamily, pipeline: str, totals: Totals) -> None:
        bounds = [*map(str, BUCKETS), "+Inf"]
        buckets = list(zip(bounds, accumulate(totals.latencies), strict=True))
        family.add_metric((pipeline,), buckets, totals.latency_seconds)


def _problems(problems: Problems) -> Values:
    for (operator, error), events in problems.failures.items():
        yield "elastream_failures_events", (operator, error), events
    for name, of in problems.operators.items():
        yield "elastream_replicas_restarted", (name,), of.restarted


def _backlog(backlog: Backlog) -> Values:
    for name, of in backlog.newest["operators"].items():
        yield "elastream_queue_oldest_seconds", (name,), of["oldest"]
        for state in ("draining", "pending", "dead", "stalled"):
            yield f"elastream_replicas_{state}", (name,), of[state]
    for name, of in backlog.newest["sources"].items():
        yield "elastream_source_lag_seconds", (name,), of["lag"]


def _newest(window: IntervalStats) -> Values:
    """Metrics of the last sampling window."""
    yield "elastream_input_rate_events_per_second", (), arrival_rate(window)
    if window.executors:
        yield "elastream_executors", (), window.executors.present
        if window.executors.limits:
            yield "elastream_executors_wanted", (), window.executors.wanted
    for name, source in window.sources.items():
        yield "elastream_source_held_events", (name,), source.queued
    for name, of in window.operators.items():
        yield "elastream_queue_events", (name,), of.queued
        yield "elastream_replicas_active", (name,), of.active
        yield "elastream_utilization_ratio", (name,), of.utilization(window.duration)
