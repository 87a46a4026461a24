"""Who gets in, and who does not."""

import asyncio

import pytest

from elastream.core.health import Health, State
from elastream.errors import InvalidInputError
from elastream.service.access import Access, tokens_in
from elastream.service.gate import ChangeGate
from support.stepped import Stepped

ANNA, BERT = "anna-0123456789abcdef", "bert-0123456789abcdef"
LOCAL = {"Host": "127.0.0.1:8888"}


def asked(stepped, headers, path="/api/settings"):
    return stepped.client.patch(path, json={"paused": True}, headers=headers)


def test_changes_want_a_token_and_are_recorded_under_its_name():
    stepped = Stepped(Access({"anna": ANNA, "bert": BERT}))
    assert stepped.get("/api/pipeline")["token_needed"] is True
    for wrong in ({}, {"Authorization": f"Bearer {ANNA}x"}, {"Authorization": BERT}):
        refused = asked(stepped, wrong)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert "Authorization: Bearer" in refused.json()["detail"]
    assert stepped.get("/api/settings")["paused"] is False
    assert asked(stepped, {"Authorization": f"Bearer {BERT}"}).json()["paused"] is True
    assert stepped.get("/api/decisions")[0]["who"] == "bert"


def test_a_stranger_reads_but_does_not_cost_a_forecast():
    stepped = Stepped(Access({"anna": ANNA}))
    for path in ("/health", "/metrics", "/models", "/api/history"):
        assert stepped.client.get(path).status_code == 200
    body = {"samples": [1, 2, 3]}
    assert stepped.client.post("/predict/lr", json=body).status_code == 401
    assert stepped.client.post("/api/what-if", json={}).status_code == 401


def test_tokens_have_names():
    found = tokens_in({"ELASTREAM_TOKEN": ANNA, "ELASTREAM_TOKENS": f" bert={BERT}=, "[:-2]})
    assert found == ({"token": ANNA, "bert": f"{BERT}="}, {})
    assert tokens_in({"ELASTREAM_READ_TOKENS": f"wall={ANNA}"}) == ({}, {"wall": ANNA})


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (ANNA, "NAME=TOKEN"),
        (f"={ANNA}", "NAME=TOKEN"),
        (f"anna={ANNA},anna={BERT}", "'anna' has two tokens"),
        ("anna=short", "at least 16 characters, all of them ASCII: that of 'anna' is not"),
    ],
)
def test_tokens_that_make_no_sense_are_refused(tokens, message):
    with pytest.raises(InvalidInputError, match=message):
        tokens_in({"ELASTREAM_TOKENS": tokens})


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (f"anna={BERT}", "'anna' already has a token that may change"),
        (f"wall={ANNA}", "one of these tokens may also change"),
        ("wall", "ELASTREAM_READ_TOKENS: it must be NAME=TOKEN"),
    ],
)
def test_a_token_may_either_read_or_change(reader, message):
    with pytest.raises(InvalidInputError, match=message):
        tokens_in({"ELASTREAM_TOKENS": f"anna={ANNA}", "ELASTREAM_READ_TOKENS": reader})


READING = ("/metrics", "/models", "/docs", "/openapi.json", "/api/history", "/api/settings")


def test_where_tokens_may_only_read_a_stranger_learns_no_more_than_how_it_is():
    stepped = Stepped(Access({"anna": ANNA}, {"wall": BERT}))
    stepped.engine.health = lambda: Health(State.WAITING, "the disk of db-7 is full")
    for path in READING:
        assert stepped.client.get(path).status_code == 401
        for token in (ANNA, BERT):
            headers = {"Authorization": f"Bearer {token}"}
            assert stepped.client.get(path, headers=headers).status_code == 200
    for path in ("/", "/assets/main.js", "/health", "/health/live"):
        assert stepped.client.get(path).status_code == 200
    assert stepped.client.get("/health").json()["why"] == ""
    known = stepped.client.get("/health", headers={"Authorization": f"Bearer {BERT}"})
    assert known.json()["why"] == "the disk of db-7 is full"
    assert stepped.client.get("/assets/../api/settings").status_code == 401


def test_a_token_that_may_only_read_changes_nothing():
    stepped = Stepped(Access({"anna": ANNA}, {"wall": BERT}))
    headers = {"Authorization": f"Bearer {BERT}"}
    refused = asked(stepped, headers)
    assert refused.status_code == 403
    assert refused.json()["detail"] == "the token of 'wall' may only read"
    assert "insufficient_scope" in refused.headers["www-authenticate"]
    for path in ("/predict/lr", "/api/what-if", "/api/stop"):
        assert stepped.client.post(path, json={}, headers=headers).status_code == 403
    assert stepped.loop.steering.settings.paused is False


def test_with_tokens_that_only_read_nobody_changes_anything():
    stepped = Stepped(Access(readers={"wall": BERT}))
    assert asked(stepped, {}).status_code == 401
    assert asked(stepped, {"Authorization": f"Bearer {BERT}"}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8888", "localhost", "[::1]:8888", "127.0.0.2"])
def test_loopback_answers_to_its_own_names(host):
    stepped = Stepped(Access(loopback=True))
    assert stepped.client.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8888", "10.0.0.1", "[", ""])
def test_loopback_answers_to_no_other_name(host):
    stepped = Stepped(Access(loopback=True))
    refused = stepped.client.get("/api/settings", headers={"Host": host})
    assert refused.status_code == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://[", "http://127.0.0.1:1"]
)
def test_no_other_site_changes_anything(origin):
    stepped = Stepped(Access(loopback=True))
    assert asked(stepped, {**LOCAL, "Origin": origin}).status_code == 403
    assert stepped.loop.steering.settings.paused is False


def test_the_page_itself_changes_things():
    stepped = Stepped(Access(loopback=True))
    assert asked(stepped, {**LOCAL, "Origin": "http://127.0.0.1:8888"}).status_code == 200


def test_a_form_of_another_kind_changes_nothing():
    stepped = Stepped()
    sent = stepped.client.post(
        "/api/stop", content='{"drain": true}', headers={"Content-Type": "text/plain"}
    )
    assert sent.status_code == 422
    assert stepped.loop.steering.settings.stopping is False


def test_too_many_changes_are_429_until_some_time_has_passed():
    now, passed, sent = [0.0], [], []

    async def app(scope, receive, send):
        passed.append(scope["path"])

    async def send(message):
        sent.append(message)

    gate = ChangeGate(app, Access(changes_per_second=0.5), now=lambda: now[0])

    def ask(method="PUT", path="/api/settings"):
        scope = {"type": "http", "method": method, "path": path, "headers": []}
        asyncio.run(gate(scope, None, send))

    for _ in range(5):
        ask()
    assert len(passed) == 3
    assert [message["status"] for message in sent if "status" in message] == [429, 429]
    ask("GET")
    ask("POST", "/predict/lr")
    now[0] = 2.0
    ask()
    assert len(passed) == 6
