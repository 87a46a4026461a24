"""What tests of a state in a folder share."""

import pytest

from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.sqlite.backend import SqliteBackend


@pytest.fixture
def backend(tmp_path):
    """An operator with two lanes."""
    backend = SqliteBackend(tmp_path / "state")
    backend.prepare("test", {"work": OperatorLanes(2)})
    return backend


@pytest.fixture
def end(backend):
    """A replica that holds both."""
    with backend.connect() as connection:
        connection.lanes.join(("work", 0), 1)
        connection.lanes.hold(frozenset({0, 1}))
        yield connection
