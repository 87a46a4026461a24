import pickle

import cloudpickle
import pyarrow as pa
import pytest

from elastream.errors import InvalidInputError
from elastream.workloads.applications import Step
from elastream.workloads.live.service_time import with_service_time

BATCH = pa.table({"id": [1, 2, 3, 4]})


def test_one_sleep_per_batch_for_all_of_its_events():
    slept = []
    step = with_service_time(Step(lambda batch: batch.slice(1)), 2.5, slept.append)
    assert step.function(BATCH).num_rows == 3
    assert slept == [0.01]


def test_set_up_and_resource_stay():
    step = with_service_time(Step(lambda batch, name: name, lambda: "model", print), 1, lambda _: 0)
    assert step.function(BATCH, step.setup()) == "model"
    assert step.teardown is print


def test_no_time_changes_nothing():
    step = Step(len)
    assert with_service_time(step, 0) is step


@pytest.mark.parametrize("service_ms", [-1, float("nan"), float("inf")])
def test_time_must_be_a_time(service_ms):
    with pytest.raises(InvalidInputError, match=f"service_ms={service_ms}"):
        with_service_time(Step(len), service_ms)


def test_it_travels_to_other_processes():
    step = with_service_time(Step(len), 0.001)
    assert pickle.loads(cloudpickle.dumps(step)).function(BATCH) == 4
