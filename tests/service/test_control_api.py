"""The control API over the simulator, as the page uses it."""

import gzip
import json

import pytest

from elastream.control.history import History
from support.served import Served


@pytest.fixture
def served():
    return Served()


def test_the_pipeline_as_it_was_declared(served):
    told = served.get("/api/pipeline")
    assert (told["name"], told["engine"], told["sources"]) == ("shop", "simulation", ["orders"])
    assert told["operators"] == [
        {"name": "parse", "pool": 6, "minimum": 1, "maximum": 6},
        {"name": "store", "pool": 4, "minimum": 1, "maximum": 4},
    ]
    assert told["edges"] == [
        {"origin": "orders", "target": "parse"},
        {"origin": "parse", "target": "store"},
    ]
    assert told["choices"]["predictors"] == ["basic", "lr", "fft"]
    assert told["token_needed"] is False


def test_there_is_an_answer_before_anything_was_measured(served):
    assert served.get("/api/history")["time"] == []
    assert served.get("/api/decisions") == []
    assert served.get("/api/forecast")["recent_error"] is None
    assert served.client.get("/metrics").status_code == 200


def test_the_history_has_a_row_for_every_sampling_window(served):
    served.cycles(2)
    told = served.get("/api/history")
    assert told["time"] == list(range(1, 21))
    assert told["input"] == [250] * 20
    # What was expected of an interval is known when the one before has ended.
    assert told["forecast"] == [None] * 10 + [250] * 10
    assert len(told["latency_p99"]) == 20
    assert set(told["operators"]) == {"parse", "store"}
    for columns in told["operators"].values():
        assert {len(column) for column in columns.values()} == {20}
    assert told["operators"]["parse"]["utilization"][0] == pytest.approx(1.0)
    assert told["operators"]["parse"]["queued"][9] == pytest.approx(1500)
    assert told["edges"]["orders>parse"] == 250


def test_a_shorter_history_can_be_asked_for(served):
    served.cycles(2)
    assert served.get("/api/history?seconds=3")["time"] == [18, 19, 20]
    assert served.client.get("/api/history?seconds=0").status_code == 422


def test_the_history_travels_packed(served):
    served.cycles(1)
    packed = served.client.get("/api/history", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    plain = served.client.get("/api/history", headers={"Accept-Encoding": "identity"})
    assert packed.json() == plain.json()


def test_decisions_come_newest_first_with_their_reasons(served):
    served.cycles(2)
    second, first = served.get("/api/decisions")
    assert (first["number"], first["outcome"], first["model"]) == (1, "changed", "basic")
    assert first["forecast"] == 250
    assert first["changes"][0]["operator"] == "parse"
    assert "250 events/s expected (basic)" in first["changes"][0]["reasons"][0]
    assert second["number"] == 2
    assert len(served.get("/api/decisions?limit=1")) == 1


def test_the_forecast_is_judged_by_what_came(served):
    served.cycles(3)
    told = served.get("/api/forecast")
    assert told == {"model": "basic", "recent_error": 0, "fallbacks": 0, "last_fallback": None}


def test_a_switch_takes_effect_and_shows_among_the_decisions(served):
    served.cycles(1)
    answer = served.client.patch("/api/settings", json={"policy": "presps", "predictor": "lr"})
    assert answer.status_code == 200
    assert (answer.json()["policy"], answer.json()["predictor"]) == ("presps", "lr")
    assert served.get("/api/settings") == answer.json()
    newest = served.get("/api/decisions")[0]
    assert (newest["kind"], newest["who"]) == ("steering", "local")
    assert newest["what"] == "policy: pa-sps -> presps; predictor: basic -> lr"
    served.cycles(1)
    assert served.get("/api/decisions")[0]["model"] is None


def test_replicas_by_hand_and_their_release(served):
    served.cycles(1)
    put = served.client.put("/api/operators/store/replicas", json={"replicas": 4})
    assert put.json()["by_hand"] == {"store": 4}
    served.cycles(1)
    assert served.active["store"] == 4
    released = served.client.delete("/api/operators/store/replicas")
    assert released.json()["by_hand"] == {}
    served.cycles(2)
    assert served.active["store"] < 4


def test_limits_and_their_release(served):
    put = served.client.put("/api/operators/parse/limits", json={"minimum": 2, "maximum": 2})
    assert put.json()["limits"] == {"parse": {"minimum": 2, "maximum": 2}}
    served.cycles(2)
    assert served.active["parse"] == 2
    assert served.client.delete("/api/operators/parse/limits").json()["limits"] == {}
    served.cycles(2)
    assert served.active["parse"] > 2


def test_a_stop_ends_the_run_and_then_changes_are_409(served):
    run = served.loop.run()
    next(run)
    answer = served.client.post("/api/stop", json={"drain": True})
    assert (answer.status_code, answer.json()["stopping"]) == (202, True)
    assert list(run) == []
    late = served.client.patch("/api/settings", json={"paused": True})
    assert (late.status_code, late.json()["detail"]) == (
        409,
        "the run is over: nothing can be changed any more",
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PATCH", "/api/settings", {"policy": "magic", "td": 5.0}, "policy"),
        ("PATCH", "/api/settings", {"predictor": None}, "predictor"),
        ("PATCH", "/api/settings", {"td": 0.5}, "td"),
        ("PATCH", "/api/settings", {"td": -1}, "td"),
        ("PATCH", "/api/settings", {"td": 1e300}, "td"),
        ("PATCH", "/api/settings", {"td": "10"}, "td"),
        ("PATCH", "/api/settings", {"paused": "yes"}, "paused"),
        ("PATCH", "/api/settings", {"paused": True, "speed": 3}, "speed"),
        ("PUT", "/api/operators/store/limits", {"minimum": 3, "maximum": 2}, "maximum"),
        ("PUT", "/api/operators/store/limits", {"minimum": 1, "maximum": 5}, "maximum"),
        ("PUT", "/api/operators/store/limits", {"minimum": 1}, "maximum"),
        ("PUT", "/api/operators/store/replicas", {"replicas": 5}, "replicas"),
        ("PUT", "/api/operators/store/replicas", {"replicas": 1.5}, "replicas"),
        ("PUT", "/api/operators/store/replicas", {"replicas": True}, "replicas"),
        ("POST", "/api/stop", {"drain": 1}, "drain"),
        ("POST", "/api/what-if", {"policy": "pa-sps"}, "predictor"),
    ],
)
def test_a_bad_value_is_422_names_its_field_and_changes_nothing(served, method, path, body, field):
    before = served.get("/api/settings")
    answer = served.client.request(method, path, json=body)
    assert answer.status_code == 422
    assert [problem["field"] for problem in answer.json()["detail"]] == [field]
    assert served.get("/api/settings") == before
    assert served.get("/api/decisions") == []


@pytest.mark.parametrize("what", ["limits", "replicas"])
def test_an_unknown_operator_is_404(served, what):
    answer = served.client.delete(f"/api/operators/stor/{what}")
    assert answer.status_code == 404
    assert "did you mean 'store'?" in answer.json()["detail"]


def test_what_goes_wrong_inside_shows_no_stack_trace(served, monkeypatch):
    def broken(who, wanted):
        raise RuntimeError("a secret")

    monkeypatch.setattr(served.loop.steering, "change", broken)
    served.client._transport.raise_server_exceptions = False
    answer = served.client.patch("/api/settings", json={"paused": True})
    assert answer.status_code == 500
    assert answer.json() == {"detail": "the service failed: its log says why"}


def test_changes_are_kept_in_the_history(tmp_path):
    history = History(tmp_path / "run.db")
    served = Served(record=history.record)
    served.cycles(1)
    served.client.patch("/api/settings", json={"paused": True})
    (change,) = history.steering()
    assert (change["who"], change["what"], change["time"]) == ("local", "paused", 10.0)
    history.close()


def test_a_browser_is_kept_in_bounds(served):
    headers = served.client.get("/api/settings").headers
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in headers
    assert "unsafe-inline" in served.client.get("/docs").headers["content-security-policy"]
    assert served.client.get("/assets/../live.py").status_code == 404
    assert served.client.get("/assets/%2e%2e/live.py").status_code == 404


def test_a_packed_history_is_what_gzip_reads(served):
    served.cycles(1)
    with served.client.stream("GET", "/api/history") as answer:
        raw = b"".join(answer.iter_raw())
    assert json.loads(gzip.decompress(raw))["time"][-1] == 10
