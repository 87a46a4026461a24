"""What the service counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ServiceMetrics:
    """One registry per service, so that two in one process do not share counts."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._predictions = Counter(
            "elastream_predictions",
            "Forecasts made, by the model that was asked for.",
            ["model"],
            registry=self._registry,
        )
        self._fallbacks = Counter(
            "elastream_prediction_fallbacks",
            "Forecasts that 'basic' made because the model failed or was too slow.",
            ["model"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "elastream_prediction_seconds",
            "Time from a valid request to its forecast, in seconds.",
            ["model"],
            buckets=BUCKETS,
            registry=self._registry,
        )

    def add(self, collector: Collector) -> None:
        """Show what this one collects as well."""
        self._registry.register(collector)

    def count(self, model: str, seconds: float, *, fell_back: bool) -> None:
        """One forecast was made."""
        self._predictions.labels(model).inc()
        self._seconds.labels(model).observe(seconds)
        if fell_back:
            self._fallbacks.labels(model).inc()

    def exposition(self) -> bytes:
        """Everything, in the text format of Prometheus."""
        return generate_latest(self._registry)
