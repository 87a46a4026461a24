from types import SimpleNamespace

import pytest

from elastream.engines.attached.query import session_of
from elastream.engines.executors.spark import SparkCluster
from elastream.errors import InvalidInputError


def session_with(master, **settings):
    """As much of a session as is looked at before anything is asked of its scheduler."""
    scala = SimpleNamespace(isLocal=lambda: master.startswith("local["))
    context = SimpleNamespace(
        master=master,
        getConf=lambda: {name.replace("_", "."): value for name, value in settings.items()},
        _jsc=SimpleNamespace(sc=lambda: scala),
        _jvm=None,
    )
    return SimpleNamespace(sparkContext=context)


@pytest.mark.parametrize(
    ("session", "remedy"),
    [
        (session_with("local[4]"), "local-cluster"),
        (session_with("yarn", spark_dynamicAllocation_enabled="true"), "set it to false"),
        (session_with("spark://host:7077"), r"spark\.executor\.cores"),
    ],
)
def test_a_session_whose_executors_cannot_be_scaled_is_refused_with_the_remedy(session, remedy):
    with pytest.raises(InvalidInputError, match=remedy):
        SparkCluster(session)
    SparkCluster(session, read_only=True)


def test_a_cluster_that_can_be_scaled_is_taken():
    SparkCluster(session_with("spark://host:7077", spark_executor_cores="2"))
    SparkCluster(session_with("k8s://https://host"))


def test_local_mode_is_listed_as_one_executor(spark_session):
    (only,) = SparkCluster(spark_session, read_only=True).list()
    assert only.cores == 64
    with pytest.raises(InvalidInputError, match="local mode"):
        SparkCluster(spark_session)


def test_a_query_of_spark_connect_is_refused():
    query = SimpleNamespace(id="1", runId="2", isActive=True)
    with pytest.raises(InvalidInputError, match="Spark Connect"):
        session_of(query)
