"""`elastream.attach` on a query in local mode: advice only, with everything around it."""

import json
import socket
import time
import urllib.request

import pytest

import elastream
from elastream.errors import InvalidInputError, UnknownNameError
from elastream.policies.guards import TrustedBatches

PATIENCE = 60.0


@pytest.fixture
def queries(spark_session, tmp_path):
    """Two queries that run."""
    frame = spark_session.readStream.format("rate").option("rowsPerSecond", 20).load()
    running = []
    for name in ("orders", "returns"):
        writer = frame.writeStream.format("noop").queryName(name)
        writer = writer.option("checkpointLocation", str(tmp_path / name))
        running.append(writer.trigger(processingTime="1 second").start())
    yield running
    for query in running:
        query.stop()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def read(url):
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return json.load(answer)


def wait_for(reached):
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.05)


@pytest.mark.xdist_group("spark")
def test_every_query_has_a_page_and_they_link_to_each_other(queries):
    port = free_port()
    first, second = (
        elastream.attach(query, advice_only=True, serve=port, predictor="lr", guards=["cooldown"])
        for query in queries
    )
    assert first.url == f"http://127.0.0.1:{port}"
    assert second.url == f"http://127.0.0.1:{port}/runs/2/"
    listed = read(f"{first.url}/api/runs")
    assert [run["name"] for run in listed] == ["orders", "returns"]
    wait_for(lambda: second.status().batch_seconds.get("addBatch"))
    wait_for(lambda: first.status().last)
    first.stop()
    assert [run["name"] for run in read(f"http://127.0.0.1:{port}/api/runs")] == ["returns"]
    second.stop()
    assert all(query.isActive for query in queries)


@pytest.mark.xdist_group("spark")
def test_choices_by_name_are_those_of_run(queries):
    query = queries[0]
    for wrong in ({"guards": ["cooldwn"]}, {"predictor": "lrr"}, {"policy": "deadlin"}):
        with pytest.raises(UnknownNameError, match="did you mean"):
            elastream.attach(query, advice_only=True, **wrong)
    with pytest.raises(InvalidInputError, match="HOST:PORT"):
        elastream.attach(query, advice_only=True, serve="here")
    with pytest.raises(InvalidInputError, match="needs a trained model"):
        elastream.attach(query, advice_only=True, predictor="bigru")
    # None of them has left anything behind.
    with elastream.attach(
        query, advice_only=True, predictor="lr@http://127.0.0.1:9", guards=[TrustedBatches()]
    ) as scaler:
        assert scaler.url is None
        wait_for(lambda: scaler.status().last)
