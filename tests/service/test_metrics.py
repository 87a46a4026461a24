"""What Prometheus reads, its page of documentation, and the Grafana dashboard."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from elastream.control.loop import Cycle, Outcome
from elastream.core.stats import ExecutorStats, SourceStats
from elastream.service.pipeline_metrics import METRICS
from elastream.service.totals import Totals
from support.pipelines import failing, interval
from support.stepped import Stepped

DOCS = Path(__file__).parents[2] / "docs"
KINDS = {
    "GaugeMetricFamily": "gauge",
    "CounterMetricFamily": "counter",
    "HistogramMetricFamily": "histogram",
}


def exposed(name):
    """The names under which Prometheus stores a metric."""
    kind = KINDS[METRICS[name].kind.__name__]
    suffixes = {"gauge": [""], "counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}
    return [name + suffix for suffix in suffixes[kind]]


@pytest.fixture(scope="module")
def lines():
    stepped = Stepped()
    stepped.cycles(2)
    stepped.client.patch("/api/settings", json={"paused": True})
    stepped.cycles(1)
    return stepped.client.get("/metrics").text.splitlines()


@pytest.mark.parametrize(
    "line",
    [
        'elastream_input_events_total{pipeline="shop"} 7500.0',
        'elastream_input_rate_events_per_second{pipeline="shop"} 250.0',
        'elastream_forecast_rate_events_per_second{pipeline="shop"} 250.0',
        'elastream_received_events_total{operator="parse",pipeline="shop"} 7500.0',
        'elastream_replicas_pool{operator="store",pipeline="shop"} 4.0',
        'elastream_decisions_total{outcome="changed",pipeline="shop"} 2.0',
        'elastream_decisions_total{outcome="unchanged",pipeline="shop"} 1.0',
        'elastream_forecast_fallbacks_total{pipeline="shop"} 0.0',
        'elastream_steering_changes_total{pipeline="shop",who="local"} 1.0',
        'elastream_interval_seconds{pipeline="shop"} 10.0',
        'elastream_paused{pipeline="shop"} 1.0',
    ],
)
def test_what_happened_is_counted(lines, line):
    assert line in lines


def test_cycles_that_are_too_quick_to_be_shown_are_counted():
    stepped = Stepped()
    stats = interval(stepped.engine.topology, 10, source="orders")
    for tenth in range(10):
        stepped.live.record(Cycle(tenth / 10, Outcome.UNCHANGED, stats=stats))
    assert len(stepped.live.decisions(100)) < 10
    counted = 'elastream_decisions_total{outcome="unchanged",pipeline="shop"} 10.0'
    assert counted in stepped.client.get("/metrics").text.splitlines()


def test_what_arrived_is_counted_however_long_a_window_was():
    topology = Stepped().engine.topology
    totals = Totals(topology)
    for sent, held in ((102.0, 7.0), (95.0, 12.0)):
        window = interval(topology, sent, source="orders")
        totals.add(replace(window, sources={"orders": SourceStats(sent, held, (100.0,))}))
    assert totals.arrived == 102 + 95 + 5


def test_every_metric_is_there_beside_those_of_the_predictors():
    stepped = Stepped()
    stepped.loop.steering.change("anna", {"td": 5.0})
    stepped.cycles(2)
    stepped.live.watch(failing(stepped.engine.topology, "parse", {"KeyError": 1}, source="orders"))
    on = ExecutorStats(3, 6.0, slots=4, beside=1, wanted=2, lead=8.0, limits=(1, 8))
    stepped.live.watch(interval(stepped.engine.topology, 10, source="orders", executors=on))
    lines = stepped.client.get("/metrics").text.splitlines()
    for line in ("executors", "executors_wanted", "executor_seconds_total"):
        value = {"executors": 3, "executors_wanted": 2}.get(line, 6)
        assert f'elastream_{line}{{pipeline="shop"}} {value}.0' in lines
    names = {re.split(r"[ {]", line)[0] for line in lines if not line.startswith("#")}
    assert {name for metric in METRICS for name in exposed(metric)} <= names
    assert "# TYPE elastream_predictions_total counter" in lines


def test_latencies_add_up(lines):
    buckets = [float(line.split()[1]) for line in lines if "latency_seconds_bucket" in line]
    assert buckets == sorted(buckets)
    (count,) = [float(line.split()[1]) for line in lines if "latency_seconds_count" in line]
    assert buckets[-1] == count > 0


def test_the_documentation_lists_every_metric_as_it_is():
    rows = re.findall(
        r"^\| `(elastream_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$",
        (DOCS / "metrics.md").read_text(),
        re.M,
    )
    documented = {name: (kind, labels, meaning) for name, kind, labels, meaning in rows}
    expected = {
        name + ("_total" if KINDS[of.kind.__name__] == "counter" else ""): (
            KINDS[of.kind.__name__],
            ", ".join(f"`{label}`" for label in of.labels),
            of.meaning,
        )
        for name, of in METRICS.items()
    }
    assert documented == expected
    text = (DOCS / "metrics.md").read_text()
    assert all(f"`{outcome}`" in text for outcome in Outcome)


def test_every_query_of_the_dashboard_names_metrics_that_exist():
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    known = {name: metric for metric in METRICS for name in exposed(metric)}
    used = set()
    for query in queries:
        names = re.findall(r"elastream_\w+", query)
        assert names, query
        for name in names:
            assert name in known, query
            used.add(known[name])
        for labels in re.findall(r"by \(([^)]*)\)", query):
            wanted = {label.strip() for label in labels.split(",")} - {"le"}
            assert wanted <= set(METRICS[known[names[0]]].labels), query
    assert len(used) >= 12


def test_every_alert_names_metrics_and_labels_that_exist():
    known = {name: metric for metric in METRICS for name in exposed(metric)}
    rules = (DOCS / "prometheus-alerts.yml").read_text().split("- alert: ")[1:]
    assert len(rules) >= 12
    for rule in rules:
        (query,) = re.findall(r"expr: (.*)", rule)
        names = re.findall(r"elastream_\w+", query)
        assert all(name in known for name in names), query
        labels = {label for name in names for label in METRICS[known[name]].labels} | {"instance"}
        for used in (*re.findall(r"\$labels\.(\w+)", rule), *re.findall(r"\{(\w+)=", query)):
            assert used in labels or not names, rule
        (summary,) = re.findall(r'summary: "(.*)"$', rule, re.M)
        assert summary
