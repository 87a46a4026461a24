"""A broker with TLS, passwords and rights: what fits works, and what does not is said at once."""

import logging
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.kafka import topics
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.errors import EngineError, InvalidInputError
from support.kafka.broker import skip_without_kafka
from support.kafka.guarded import PASSWORDS, GuardedCluster
from support.numbers_program import PATIENCE, Program, said
from support.processes import descendants
from support.spark_cluster import StandaloneCluster

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("kafka")]
LANES = {"b": OperatorLanes(2)}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    skip_without_kafka()
    with GuardedCluster(tmp_path_factory.mktemp("guarded") / "kafka") as cluster:
        cluster.add_scram_users()
        for prefix in ("scram.", "plain.", "run."):
            cluster.allow("owner", prefix)
        cluster.allow("guest", "read-only.", ("CREATE", "DESCRIBE", "READ"))
        cluster.allow("guest", "some.journal")
        cluster.allow("guest", "some.snapshots")
        cluster.allow("guest", "some.", ("CREATE", "DESCRIBE", "READ", "WRITE"))
        cluster.allow("guest", "small.", ("CREATE", "DELETE", "DESCRIBE", "READ", "WRITE"))
        yield cluster


@pytest.fixture
def backend(guarded, tmp_path):
    """Makes a backend with these settings."""

    def make(name, settings, address=None):
        file = tmp_path / "kafka.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return open_backend(f"kafka:{address or guarded.guarded}/{name}?settings={file}")

    return make


def use(backend):
    """All that the driver does before the first event."""
    with backend.own():
        backend.prepare("test", LANES)
        with backend.connect() as connection:
            assert connection.ledger.totals().waiting("b") == 0


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_user_with_the_rights_is_let_in(guarded, backend, mechanism):
    name = "plain" if mechanism == "PLAIN" else "scram"
    state = backend(name, guarded.settings("owner", mechanism))
    use(state)
    assert f"{name}.journal" in state.remove()


def test_tls_alone_is_enough_where_no_password_is_asked_for(guarded, backend):
    tls = {"security.protocol": "SSL", "ssl.ca.location": str(guarded.authority)}
    state = backend("tls", tls, guarded.encrypted)
    use(state)
    state.remove()


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"sasl.password": "hush-wrong"}, "Authentication failed"),
        ({"sasl.password": "hush-wrong", "sasl.mechanism": "SCRAM-SHA-512"}, "credentials"),
        ({"sasl.mechanism": "SCRAM-SHA-256"}, "SCRAM-SHA-256"),
        ({"ssl.ca.location": "OTHER"}, "certificate verify failed"),
        ({"ssl.ca.location": "/none"}, "ssl.ca.location"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "security.protocol"),
        ({"sasl.mechanism": "hush-wrong"}, "Unsupported SASL mechanism: ..."),
        ({"security.protocl": "hush-wrong"}, "security.protocl"),
        ({"socket.timeout.ms": "hush-wrong"}, "socket.timeout.ms"),
    ],
)
def test_whoever_is_not_let_in_hears_why_at_once(
    guarded, backend, monkeypatch, caplog, capfd, wrong, problem
):
    monkeypatch.setattr(topics, "PATIENCE", 8.0)
    caplog.set_level(logging.DEBUG)
    if wrong.get("ssl.ca.location") == "OTHER":
        wrong = {"ssl.ca.location": str(guarded.other_authority)}
    state = backend("refused", guarded.settings("owner") | wrong)
    began = time.monotonic()
    with pytest.raises(InvalidInputError, match=re.escape(problem)) as refusal:
        use(state)
    assert time.monotonic() - began < 20
    assert "kafka.properties" in str(refusal.value) or "settings" in str(refusal.value)
    printed = capfd.readouterr()
    for shown in (str(refusal.value), repr(refusal.value), caplog.text, *printed):
        assert "hush" not in shown
        assert not any(password in shown for password in PASSWORDS.values())


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nothing", r"does not allow making the topic nothing\.\S+ \(TOPIC_AUTHORIZATION_FAILED\)"),
        ("read-only", r"does not allow to delete, write the topic read-only\."),
        ("some", r"does not allow to delete the topic some\.(lanes\.b|events|dead-letters)"),
    ],
)
def test_a_right_that_is_missing_is_named_before_the_first_event(guarded, backend, name, problem):
    state = backend(name, guarded.settings("guest"))
    remedy = rf".*rights to create, alter, delete, read and write topics that begin with '{name}\.'"
    with pytest.raises(EngineError, match=problem + remedy):
        use(state)


def test_too_few_partitions_that_may_not_be_added_to_are_told(guarded, backend):
    admin = AdminClient({"bootstrap.servers": guarded.address, "log_level": 0})
    admin.create_topics([NewTopic("small.lanes.b", 1)])["small.lanes.b"].result(20)
    state = backend("small", guarded.settings("guest"))
    with pytest.raises(
        EngineError, match=r"does not allow making the topic small\.lanes\.b .*alter"
    ):
        use(state)


def test_a_run_shows_its_secrets_nowhere(guarded, tmp_path, monkeypatch):
    """Not on its command line, in its logs, its history, its page, or Spark's events.

    Executors have the settings from Spark, which copies the files next to them.
    """
    program = Program(tmp_path, rate=60, seconds=6)
    (tmp_path / "mended").touch()
    monkeypatch.chdir(tmp_path)
    shutil.copy(guarded.authority, "authority.pem")
    settings = guarded.settings("owner") | {"ssl.ca.location": "authority.pem"}
    lines = [f"{name}={value}\n" for name, value in settings.items()]
    Path("kafka.properties").write_text("".join(lines))
    state = f"kafka:{guarded.guarded}/run?settings=kafka.properties"
    events = tmp_path / "spark-events"
    events.mkdir()
    conf = [
        "spark.files=kafka.properties,authority.pem",
        "spark.eventLog.enabled=true",
        f"spark.eventLog.dir=file://{events}",
    ]
    options = [word for each in conf for word in ("--conf", each)]
    with (
        StandaloneCluster(tmp_path / "spark", 1, 12) as cluster,
        program.running(
            state, "--master", cluster.master, "--serve", "--port", "0", *options
        ) as run,
    ):
        program.wait_until_processed(program.events // 4, state, run)
        commands = [each.command for each in descendants(run.pid)]
        commands.append(Path(f"/proc/{run.pid}/cmdline").read_text())
        surroundings = [Path(f"/proc/{run.pid}/environ").read_text(errors="replace")]
        (url,) = re.findall(r"watch and steer it at (\S+)", (tmp_path / "log").read_text())
        served = [
            fetched(f"{url}{path}") for path in ("/", "/api/pipeline", "/api/settings", "/metrics")
        ]
        assert run.wait(PATIENCE) == 0, program.log
    assert program.written() == program.expected
    shown = said("state", "show", state) + said("dead-letters", state)
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    files = [each for each in files if each.name != "kafka.properties"]
    assert any(path.is_relative_to(events) for path in files)
    assert any(path.name == "history.db" for path in files)
    written = [path.read_bytes().decode(errors="replace") for path in files]
    for text in (*commands, *surroundings, *served, shown, *written):
        assert PASSWORDS["owner"] not in text
    assert "removed run.journal" in said("clean", state, "--yes")


def fetched(url):
    """What the page of a run answers."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()


def test_a_user_in_the_address_is_refused_without_showing_the_password():
    command = [sys.executable, "-m", "elastream", "state", "show"]
    done = subprocess.run(
        [*command, "kafka:me:hush@localhost:9092/orders"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "?settings=FILE" in done.stderr
    assert "hush" not in done.stderr + done.stdout
