"""What all tests share."""

import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from elastream.predictors.cards import CARDS
from support.postgresql import postgresql_url

__all__ = ["postgresql_url"]

# They are run with an elastream of long ago, and import what it had.
collect_ignore_glob = ["*/make_state_v*.py"]

# The same examples on every run, and no deadline: machines are shared and slow at times.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")

# A shell that starts tests in the background has Ctrl-C ignored, here and in all processes that
# tests start: those of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


SHARED = {
    "spark_session": "spark",
    "browser": "browser",
    "trained_files": "networks",
    "kafka_cluster": "kafka",
    "own_kafka_cluster": "kafka",
}
"""Fixtures that take long, and the group of tests in whose process alone they are to be made."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run in several processes, those that share something go to the same one."""
    for item in items:
        for fixture, group in SHARED.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(group))
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        if any(isinstance(each, str) and each == "kafka" for each in parameters):
            item.add_marker(pytest.mark.xdist_group("kafka"))
        on_kafka = "kafka" in (mark.args[0] for mark in item.iter_markers("xdist_group"))
        if on_kafka and not item.get_closest_marker("quick_on_kafka"):
            item.add_marker(pytest.mark.long)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fail where groups have no effect: every process would make what one was to make for all."""
    if session.config.getoption("loadgroup", False):
        for item in session.items:
            grouped = item.get_closest_marker("xdist_group") is not None
            assert grouped == ("@" in item.nodeid.rpartition("]")[2]), item.nodeid


@pytest.fixture(scope="session")
def trained_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One file per recurrent model: networks that can be used, and have hardly learnt anything."""
    # Here, because JAX takes seconds that tests without networks should not spend.
    from elastream.predictors.recurrent.architecture import Architecture
    from elastream.predictors.recurrent.model import Origin
    from elastream.predictors.recurrent.model_file import save
    from elastream.predictors.recurrent.training import train

    folder = tmp_path_factory.mktemp("trained")
    wave = 500 + 200 * np.sin(np.arange(60) / 5)
    files = {name: folder / name for name, card in CARDS.items() if card.trained}
    for name, file in files.items():
        shape = Architecture(name, window=12, horizon=6, hidden=4)
        save(train(wave, shape, Origin("wave", step=1.0), epochs=1), file)
    return files


@pytest.fixture(scope="session")
def spark_session():
    """One session for all tests, with slots for two generations of small pools."""
    from elastream.engines.spark.driver.session import new_session

    session = new_session(64)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka_cluster():
    """One broker for all tests; skipped where there is none to start, but never in CI."""
    from support.kafka.broker import shared_cluster

    return shared_cluster()


@pytest.fixture
def own_kafka_cluster(tmp_path):
    """A broker for one test, which may kill it: with few topics it is back in seconds."""
    from support.kafka.broker import Cluster, skip_without_kafka

    skip_without_kafka()
    with Cluster(tmp_path / "kafka") as cluster:
        yield cluster
