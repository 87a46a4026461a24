"""`elastream simulate --serve`, as a user starts, steers and stops it."""

import json
import os
import signal
import subprocess
import sys
from http.client import HTTPConnection

import numpy as np
import pytest

from elastream.cli.served_simulation import simulate_served
from elastream.control.history_reader import HistoryReader
from elastream.control.run import Run
from elastream.policies.slo import Slo
from elastream.predictors.basic import Basic
from elastream.running.service import RunService
from elastream.workloads.applications import twitter
from elastream.workloads.traces import evenly

SERVED = ("--serve", "--port", "0", "--log-format", "json", "--td", "30")


@pytest.fixture
def started():
    processes = []

    def start(*options):
        process = subprocess.Popen(
            [sys.executable, "-m", "elastream", "simulate", *SERVED, *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "no_proxy": "*"},
        )
        processes.append(process)
        for line in process.stderr:
            url = json.loads(line).get("url")
            if url:
                return process, HTTPConnection(url.removeprefix("http://"), timeout=120)
        raise AssertionError("it did not start")

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def asked(connection, method, path, body=None):
    headers = {"Content-Type": "application/json"} if body is not None else {}
    connection.request(
        method, path, body=None if body is None else json.dumps(body), headers=headers
    )
    answer = connection.getresponse()
    told = json.load(answer)
    connection.close()
    return answer.status, told


def test_it_is_steered_and_stopped_over_the_api_and_logs_json(started, tmp_path):
    process, connection = started("--pace", 1, "--out", tmp_path, "--json")
    assert asked(connection, "GET", "/api/pipeline")[1]["engine"] == "simulation"
    status, settings = asked(connection, "PATCH", "/api/settings", {"policy": "presps"})
    assert (status, settings["policy"]) == (200, "presps")
    assert asked(connection, "POST", "/api/stop", {"drain": True})[0] == 202
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert json.loads(out)["replica_seconds"] > 0
    logged = [json.loads(line) for line in err.splitlines()]
    assert all({"time", "level", "logger", "message"} <= entry.keys() for entry in logged)
    messages = [entry["message"] for entry in logged]
    assert messages[:2] == ["local: policy: slo -> presps", "local: drain and stop"]
    assert logged[2]["outcome"] == "skipped"
    history = HistoryReader(tmp_path / "history.db")
    assert [change["who"] for change in history.steering()] == ["local", "local"]
    history.close()


def test_at_its_own_end_it_goes_on_answering_until_ctrl_c(started):
    process, connection = started("--pace", 1e6, "--trace", "step")
    for line in process.stderr:
        if "until Ctrl-C" in line:
            break
    status, told = asked(connection, "PATCH", "/api/settings", {"paused": True})
    assert (status, told["detail"]) == (409, "the run is over: nothing can be changed any more")
    assert asked(connection, "GET", "/api/decisions?limit=1")[1][0]["kind"] == "cycle"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert "replica seconds" in out


def test_what_is_served_is_measured_as_what_is_not():
    """Throughput is compared with the input over five seconds, however short intervals are."""
    trace = evenly(np.tile([500.0, 4000.0], 10))
    run = Run(twitter(), trace, Slo(), Basic(), Slo.td).ready()
    measured = []

    def finished(result):
        measured.append(result.metrics)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_served(run, 1e6, RunService.at("127.0.0.1", 0), {}, finished, None)
    here = run.simulate().metrics
    assert measured[0].throughput_degradation == pytest.approx(here.throughput_degradation)
    assert measured[0].replica_seconds == pytest.approx(here.replica_seconds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pace", "0"], "--pace 0: it must be above 0"),
        (["--host", "0.0.0.0"], "so the service requires a token"),
        (["--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(elastream, monkeypatch, options, message):
    for name in ("ELASTREAM_TOKEN", "ELASTREAM_TOKENS"):
        monkeypatch.delenv(name, raising=False)
    if "192.0.2.1" in options:
        monkeypatch.setenv("ELASTREAM_TOKENS", "anna=0123456789abcdef")
    ended = elastream("simulate", "--serve", *options)
    assert ended.code == 2
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_mistake_is_json_for_programs(elastream):
    ended = elastream("simulate", "--td", "0", "--log-format", "json")
    assert ended.code == 2
    told = json.loads(ended.err)
    assert told["level"] == "error"
    assert "--td 0" in told["message"]
    # The next command in this process is for people again.
    assert elastream("simulate", "--td", "0").err.startswith("elastream: --td 0")
