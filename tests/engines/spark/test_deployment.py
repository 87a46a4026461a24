"""What travels to workers, and what cannot."""

import threading

import pytest

from elastream.core.pipeline import Pipeline
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker.deployment import Deployment
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.errors import InvalidInputError

LOCK = threading.Lock()


def locked(batch, lock=LOCK):
    return batch


def deployment(folder, make=len, **settings):
    pipeline = Pipeline("orders")
    pipeline.add(
        settings.pop("function", len), name="price", after=pipeline.source("in"), **settings
    )
    traces = {"in": TraceSource(make, 1.0, [1.0])}
    return Deployment(pipeline.topology(), traces, Options(), open_backend(folder))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"function": locked}, "the function of the operator 'price'"),
        ({"setup": locked}, "the setup of the operator 'price'"),
        ({"when": locked}, "when= of the edge from 'in' to 'price'"),
        ({"make": locked}, r"make\(first, count\) of the source 'in'"),
    ],
)
def test_a_function_that_cannot_be_pickled_is_named(monkeypatch, tmp_path, given, told):
    monkeypatch.setattr(locked, "__module__", "__main__")  # As in a script: pickled by value.
    cause = "TypeError: cannot pickle '_thread.lock' object"
    with pytest.raises(
        InvalidInputError, match=f"{told} cannot be sent to replicas: {cause}; .* setup"
    ):
        deployment(tmp_path, **given).to_text()
