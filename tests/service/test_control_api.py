"""The control API over the simulator, as the page uses it."""

import gzip
import json

import pytest

from elastream.control.history import History
from elastream.control.history_reader import HistoryReader
from elastream.control.loop import Cycle, Outcome
from elastream.core.decision import Change, Reason
from elastream.service.control_messages import HistoryMessage
from support.pipelines import interval
from support.stepped import Stepped


@pytest.fixture
def stepped():
    return Stepped()


def test_the_pipeline_as_it_was_declared(stepped):
    told = stepped.get("/api/pipeline")
    assert (told["name"], told["engine"], told["sources"]) == ("shop", "simulation", ["orders"])
    assert told["operators"] == [
        {"name": "parse", "pool": 6, "minimum": 1, "maximum": 6, "inside": []},
        {"name": "store", "pool": 4, "minimum": 1, "maximum": 4, "inside": []},
    ]
    assert told["edges"] == [
        {"origin": "orders", "target": "parse"},
        {"origin": "parse", "target": "store"},
    ]
    assert told["choices"]["predictors"] == ["basic", "lr", "fft"]
    assert told["token_needed"] is False


def test_there_is_an_answer_before_anything_was_measured(stepped):
    assert stepped.get("/api/history")["time"] == []
    assert stepped.get("/api/decisions") == []
    assert stepped.get("/api/forecast")["recent_error"] is None
    assert stepped.client.get("/metrics").status_code == 200


def test_the_history_has_a_row_for_every_sampling_window(stepped):
    stepped.cycles(2)
    told = stepped.get("/api/history")
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


def test_a_shorter_history_can_be_asked_for(stepped):
    stepped.cycles(2)
    assert stepped.get("/api/history?seconds=3")["time"] == [18, 19, 20]
    assert stepped.client.get("/api/history?seconds=0").status_code == 422


def test_the_history_is_described_as_it_is(stepped):
    stepped.cycles(2)
    assert stepped.get("/api/history").keys() == HistoryMessage.model_fields.keys()


def test_the_history_travels_packed(stepped):
    stepped.cycles(1)
    packed = stepped.client.get("/api/history", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    plain = stepped.client.get("/api/history", headers={"Accept-Encoding": "identity"})
    assert packed.json() == plain.json()


def test_decisions_come_newest_first_with_their_reasons(stepped):
    stepped.cycles(2)
    second, first = stepped.get("/api/decisions")
    assert (first["number"], first["outcome"], first["model"]) == (1, "changed", "basic")
    assert first["forecast"] == 250
    assert first["changes"][0]["operator"] == "parse"
    assert "250 events/s expected (basic)" in first["changes"][0]["reasons"][0]
    assert second["number"] == 2
    assert len(stepped.get("/api/decisions?limit=1")) == 1


def test_the_forecast_is_judged_by_what_came(stepped):
    stepped.cycles(3)
    told = stepped.get("/api/forecast")
    assert told == {
        "model": "basic",
        "recent_error": 0,
        "coverage": None,
        "pinball": None,
        "trusts": {},
        "fallbacks": 0,
        "last_fallback": None,
    }


def test_what_is_asked_for_again_until_it_comes_is_one_decision(stepped):
    live = stepped.live
    for number in range(9):
        changes = (Change("parse", 1, 3, (Reason("load", {}, f"{number} queued"),)),)
        stats = interval(live.topology, 3, number, td=0.25, source="orders")
        live.record(Cycle(0.25 * number, Outcome.CHANGED, stats=stats, changes=changes))
    told = stepped.get("/api/decisions")
    assert [(of["time"], len(of["changes"])) for of in told] == [(2.0, 0), (1.0, 0), (0.0, 1)]


def test_a_switch_takes_effect_and_shows_among_the_decisions(stepped):
    stepped.cycles(1)
    answer = stepped.client.patch("/api/settings", json={"policy": "presps", "predictor": "lr"})
    assert answer.status_code == 200
    assert (answer.json()["policy"], answer.json()["predictor"]) == ("presps", "lr")
    assert stepped.get("/api/settings") == answer.json()
    newest = stepped.get("/api/decisions")[0]
    assert (newest["kind"], newest["who"]) == ("steering", "local")
    assert newest["what"] == "policy: pa-sps -> presps; predictor: basic -> lr"
    stepped.cycles(1)
    assert stepped.get("/api/decisions")[0]["model"] is None


def test_replicas_by_hand_and_their_release(stepped):
    stepped.cycles(1)
    put = stepped.client.put("/api/operators/store/replicas", json={"replicas": 4})
    assert put.json()["by_hand"] == {"store": 4}
    stepped.cycles(1)
    assert stepped.active["store"] == 4
    released = stepped.client.delete("/api/operators/store/replicas")
    assert released.json()["by_hand"] == {}
    stepped.cycles(2)
    assert stepped.active["store"] < 4


def test_limits_and_their_release(stepped):
    put = stepped.client.put("/api/operators/parse/limits", json={"minimum": 2, "maximum": 2})
    assert put.json()["limits"] == {"parse": {"minimum": 2, "maximum": 2}}
    stepped.cycles(2)
    assert stepped.active["parse"] == 2
    assert stepped.client.delete("/api/operators/parse/limits").json()["limits"] == {}
    stepped.cycles(2)
    assert stepped.active["parse"] > 2


def test_a_stop_ends_the_run_and_then_changes_are_409(stepped):
    run = stepped.loop.run()
    next(run)
    answer = stepped.client.post("/api/stop", json={"drain": True})
    assert (answer.status_code, answer.json()["stopping"]) == (202, True)
    assert list(run) == []
    late = stepped.client.patch("/api/settings", json={"paused": True})
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
def test_a_bad_value_is_422_names_its_field_and_changes_nothing(stepped, method, path, body, field):
    before = stepped.get("/api/settings")
    answer = stepped.client.request(method, path, json=body)
    assert answer.status_code == 422
    assert [problem["field"] for problem in answer.json()["detail"]] == [field]
    assert stepped.get("/api/settings") == before
    assert stepped.get("/api/decisions") == []


@pytest.mark.parametrize("what", ["limits", "replicas"])
def test_an_unknown_operator_is_404(stepped, what):
    answer = stepped.client.delete(f"/api/operators/stor/{what}")
    assert answer.status_code == 404
    assert "did you mean 'store'?" in answer.json()["detail"]


def test_what_goes_wrong_inside_shows_no_stack_trace(stepped, monkeypatch):
    def broken(who, wanted):
        raise RuntimeError("a secret")

    monkeypatch.setattr(stepped.loop.steering, "change", broken)
    stepped.client._transport.raise_server_exceptions = False
    answer = stepped.client.patch("/api/settings", json={"paused": True})
    assert answer.status_code == 500
    assert answer.json() == {"detail": "the service failed: its log says why"}


def test_changes_are_kept_in_the_history(tmp_path):
    history = History(tmp_path / "run.db")
    stepped = Stepped(record=history.record)
    stepped.cycles(1)
    stepped.client.patch("/api/settings", json={"paused": True})
    history.close()
    (change,) = HistoryReader(tmp_path / "run.db").steering()
    assert (change["who"], change["what"], change["time"]) == ("local", "paused", 10.0)


def test_a_browser_is_kept_in_bounds(stepped):
    headers = stepped.client.get("/api/settings").headers
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in headers
    assert "unsafe-inline" in stepped.client.get("/docs").headers["content-security-policy"]
    assert stepped.client.get("/assets/../live.py").status_code == 404
    assert stepped.client.get("/assets/%2e%2e/live.py").status_code == 404


def test_a_packed_history_is_what_gzip_reads(stepped):
    stepped.cycles(1)
    with stepped.client.stream("GET", "/api/history") as answer:
        raw = b"".join(answer.iter_raw())
    assert json.loads(gzip.decompress(raw))["time"][-1] == 10
