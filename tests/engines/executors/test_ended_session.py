"""A session that ends while its executors are scaled, which no program should be blamed for."""

from types import SimpleNamespace

import pytest

from elastream.engines.executors.spark import SparkCluster
from elastream.errors import EngineError


def cluster_with(is_stopped):
    """Executors of a session whose scheduler takes no requests."""
    scala = SimpleNamespace(requestTotalExecutors=lambda *args: False, isStopped=is_stopped)
    jvm = SimpleNamespace(PythonUtils=SimpleNamespace(toScalaMap=dict))
    context = SimpleNamespace(getConf=dict, _jsc=SimpleNamespace(sc=lambda: scala), _jvm=jvm)
    return SparkCluster(SimpleNamespace(sparkContext=context), read_only=True)


def test_a_cluster_manager_that_rejects_a_request_is_named():
    cluster = cluster_with(lambda: False)
    assert not cluster.ended
    with pytest.raises(EngineError, match="rejected the request for 3 executors"):
        cluster.ask(3)


def test_a_session_that_has_ended_is_asked_for_nothing_and_that_is_no_problem():
    cluster = cluster_with(lambda: True)
    assert cluster.ended
    cluster.ask(3)


def test_a_session_whose_jvm_is_gone_has_ended():
    assert cluster_with(lambda: 1 / 0).ended
