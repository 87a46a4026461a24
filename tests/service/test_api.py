import threading
from collections.abc import Iterator

import numpy as np
import pytest
from starlette.testclient import TestClient

from elastream.predictors import PREDICTORS, Predictor
from elastream.predictors.base import Samples
from elastream.predictors.remote import RemotePredictor
from elastream.service.access import Access
from elastream.service.api import create_app
from elastream.service.gate import LARGEST_BODY


class Gated(Predictor):
    """Answers when its gate opens."""

    name = "ann"

    def __init__(self) -> None:
        self.gate = threading.Event()

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        self.gate.wait(120)
        return np.full(horizon, 42.0)


class Broken(Predictor):
    name = "rf"

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        raise RuntimeError("no forest")


@pytest.fixture
def gated() -> Iterator[Gated]:
    model = Gated()
    yield model
    model.gate.set()


@pytest.fixture
def client(gated: Gated) -> Iterator[TestClient]:
    models = {name: PREDICTORS[name]() for name in ("basic", "lr", "fft")}
    app = create_app({**models, "ann": gated, "rf": Broken()}, timeout=60)
    with TestClient(app) as client:
        yield client


def test_a_forecast(client: TestClient) -> None:
    answer = client.post("/predict/lr", json={"samples": [10, 20, 30], "horizon": 2})
    assert answer.status_code == 200
    body = answer.json()
    assert body.pop("elapsed_ms") >= 0
    assert body == {"model": "lr", "predictions": [40, 50], "mean": 45}


def test_the_horizon_is_six_unless_told(client: TestClient) -> None:
    answer = client.post("/predict/basic", json={"samples": [1, 2]})
    assert answer.json()["predictions"] == [1, 2, 1, 2, 1, 2]


def test_a_model_that_is_too_slow_falls_back_and_says_so(gated: Gated) -> None:
    with TestClient(create_app({"ann": gated}, timeout=0.2)) as client:
        body = client.post("/predict/ann", json={"samples": [1, 2, 3], "horizon": 2}).json()
    assert body["model"] == "basic"
    assert body["fallback"] == "ann took longer than 0.2 s"
    assert body["predictions"] == [2, 3]


def test_a_model_that_fails_falls_back_and_says_so(client: TestClient) -> None:
    body = client.post("/predict/rf", json={"samples": [1, 2, 3], "horizon": 2}).json()
    assert (body["model"], body["fallback"]) == ("basic", "rf failed: no forest")


def test_a_slow_forecast_does_not_block_another(gated: Gated) -> None:
    with TestClient(create_app({"ann": gated, "lr": PREDICTORS["lr"]()}, timeout=60)) as client:
        slow: list[list[float]] = []

        def ask() -> None:
            answer = client.post("/predict/ann", json={"samples": [1, 2, 3], "horizon": 1})
            slow.append(answer.json()["predictions"])

        thread = threading.Thread(target=ask)
        thread.start()
        quick = client.post("/predict/lr", json={"samples": [1, 2, 3], "horizon": 1})
        assert (quick.json()["predictions"], slow) == ([4], [])
        gated.gate.set()
        thread.join(60)
        assert slow == [[42]]


def test_an_unknown_model_is_404_with_the_list(client: TestClient) -> None:
    answer = client.post("/predict/fff", json={"samples": [1, 2]})
    assert answer.status_code == 404
    assert answer.json()["models"] == ["ann", "basic", "fft", "lr", "rf"]
    assert "did you mean 'fft'?" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("{}", "samples"),
        ('{"samples": [1]}', "samples"),
        ('{"samples": 5}', "samples"),
        ('{"samples": [1, -2]}', "samples[1]"),
        ('{"samples": [1, NaN]}', "samples[1]"),
        ('{"samples": [Infinity, 1]}', "samples[0]"),
        ('{"samples": [1, 1e16]}', "samples[1]"),
        ('{"samples": [1, "2"]}', "samples[1]"),
        ('{"samples": [true, 2]}', "samples[0]"),
        ('{"samples": [null, 2]}', "samples[0]"),
        (f'{{"samples": [1, 1{"0" * 400}]}}', "samples[1]"),
        ('{"samples": [1, 2], "horizon": 0}', "horizon"),
        ('{"samples": [1, 2], "horizon": 10001}', "horizon"),
        ('{"samples": [1, 2], "horizon": "six"}', "horizon"),
        ('{"samples": [1, 2], "horizn": 6}', "horizn"),
        ("[1, 2]", "body"),
    ],
)
def test_a_bad_body_is_422_and_names_the_field(client: TestClient, body: str, field: str) -> None:
    answer = client.post("/predict/lr", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert [problem["field"] for problem in answer.json()["detail"]] == [field]


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"samples": [1, 2', b"\xff", b"[" * 100_000, b"1" * 10_000]
)
def test_what_is_no_json_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/predict/lr", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in {400, 422}


def test_100_000_samples_are_taken_and_one_more_is_not(client: TestClient) -> None:
    samples = [float(value % 97) for value in range(100_001)]
    assert client.post("/predict/fft", json={"samples": samples[:-1]}).status_code == 200
    refused = client.post("/predict/fft", json={"samples": samples})
    assert refused.status_code == 413
    assert refused.json()["detail"][0]["field"] == "samples"


def test_a_body_of_more_than_8_mib_is_413(client: TestClient) -> None:
    body = b'{"samples": [1, 2]' + b" " * LARGEST_BODY + b"}"
    announced = client.post("/predict/lr", content=body)
    assert (announced.status_code, announced.json()["detail"]) == (
        413,
        "the body is larger than 8388608 bytes",
    )
    chunks = (body[start : start + 1_000_000] for start in range(0, len(body), 1_000_000))
    assert client.post("/predict/lr", content=chunks).status_code == 413


def test_models(client: TestClient) -> None:
    cards = {card["name"]: card for card in client.get("/models").json()["models"]}
    assert set(cards) == {"basic", "lr", "fft", "ann", "rf"}
    assert cards["fft"]["parameters"] == {"frequencies": 10, "degree": 3}


def test_a_model_that_is_not_in_the_catalogue_is_listed_by_its_name() -> None:
    remote = RemotePredictor("http://127.0.0.1:9", "fft")
    with TestClient(create_app({remote.name: remote})) as client:
        (card,) = client.get("/models").json()["models"]
    assert card == {"name": "fft@http://127.0.0.1:9", "paper": "", "parameters": {}}


def test_health(client: TestClient) -> None:
    assert client.get("/health").json()["status"] == "ok"


def test_metrics_count_forecasts_and_fallbacks(client: TestClient) -> None:
    for model in ("lr", "lr", "rf"):
        client.post(f"/predict/{model}", json={"samples": [1, 2, 3]})
    lines = client.get("/metrics").text.splitlines()
    assert 'elastream_predictions_total{model="lr"} 2.0' in lines
    assert 'elastream_prediction_fallbacks_total{model="rf"} 1.0' in lines
    assert 'elastream_prediction_seconds_count{model="lr"} 2.0' in lines


def test_the_docs_need_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/").text
    assert page == client.get("/docs").text
    assert "POST /predict/{model}" in page
    assert "http://" not in page
    assert "https://" not in page
    assert client.get("/openapi.json").json()["info"]["title"] == "elastream predictors"


def test_a_token_is_wanted_when_there_is_one() -> None:
    token = "correct-horse-battery"
    with TestClient(
        create_app({"lr": PREDICTORS["lr"]()}, access=Access({"token": token}))
    ) as client:
        body = {"samples": [1, 2, 3]}
        for wrong in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": token}):
            answer = client.post("/predict/lr", json=body, headers=wrong)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        assert client.get("/metrics").status_code == 401
        assert client.get("/health").status_code == 200
        right = {"Authorization": f"Bearer {token}"}
        assert client.post("/predict/lr", json=body, headers=right).status_code == 200
