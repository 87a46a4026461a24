import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from elastream.core.groupings import SHARED_QUEUE
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import from_bytes
from elastream.engines.spark.backends.base import ActivePlan
from elastream.engines.spark.worker.events import input_of, to_table, together
from elastream.engines.spark.worker.routing import UNIT, Emitter
from elastream.errors import InvalidInputError

TABLE = pa.table({"n": [1, 2, 3], "word": ["a", "b", "c"]})


def test_a_function_gets_what_its_annotation_asks_for():
    def by_table(batch: pa.Table): ...
    def by_frame(batch: pd.DataFrame): ...
    def by_rows(batch: list[dict]): ...
    def by_nothing(batch): ...

    assert input_of(by_table)(TABLE) is TABLE
    assert input_of(by_nothing)(TABLE) is TABLE
    assert isinstance(input_of(by_frame)(TABLE), pd.DataFrame)
    assert input_of(by_rows)(TABLE)[0] == {"n": 1, "word": "a"}


def test_what_cannot_be_given_is_refused():
    def odd(batch: np.ndarray): ...

    with pytest.raises(InvalidInputError, match=r"'odd' asks for .*ndarray"):
        input_of(odd)


def test_a_function_may_return_tables_frames_rows_or_nothing():
    assert to_table(TABLE) is TABLE
    assert to_table(TABLE.to_pandas()).equals(TABLE)
    assert to_table(TABLE.to_pylist()).equals(TABLE)
    assert to_table(None).num_rows == 0
    with pytest.raises(InvalidInputError, match="an operator returned int"):
        to_table(3)


def emitter_of(**edges):
    pipeline = Pipeline()
    pipeline.add(len, after=pipeline.source("in"), name="work")
    for name, how in edges.items():
        settings = {key: how.pop(key) for key in ("grouping", "key") if key in how}
        pipeline.add(len, after="work", name=name, pool=4, **how, **settings)
    topology = pipeline.topology()
    return Emitter(("work", 0), topology.outgoing["work"], topology.by_name)


def emitted(emitter, table):
    divided = emitter.divide(table)
    emitter.follow(ActivePlan(dict.fromkeys(divided, (0, 1))))
    batches = [
        batch for name, part in divided.items() for batch in emitter.route(name, part, born=7.0)
    ]
    assert all(batch.born == 7.0 for batch in batches)
    return batches, {name: part.num_rows for name, part in divided.items()}


def test_edges_carry_all_events_those_that_match_or_a_share():
    table = pa.table({"n": range(1000)})
    emitter = emitter_of(
        every={}, large={"when": lambda batch: pc.greater_equal(batch["n"], 900)},
        some={"share": 0.2}, most={"share": 0.7},
    )  # fmt: skip
    _, sent = emitted(emitter, table)
    assert sent["every"] == 1000
    assert sent["large"] == 100
    assert sent["some"] == pytest.approx(200, abs=2)
    assert sent["most"] == pytest.approx(700, abs=2)


def test_shares_are_of_different_events_and_go_on_from_batch_to_batch():
    emitter = emitter_of(left={"share": 0.5}, right={"share": 0.5})
    seen = {"left": [], "right": []}
    for first in range(0, 100, 3):
        table = pa.table({"n": range(first, first + 3)})
        batches, _ = emitted(emitter, table)
        for batch in batches:
            seen[batch.operator] += from_bytes(batch.data)["n"].to_pylist()
    assert sorted(seen["left"] + seen["right"]) == list(range(102))
    assert len(seen["left"]) == pytest.approx(51, abs=1)


def test_units_stay_together_where_no_key_parts_them():
    batches, _ = emitted(emitter_of(next={}), pa.table({"n": range(3 * UNIT)}))
    assert [(batch.replica, batch.events) for batch in batches] == [(0, 2 * UNIT), (1, UNIT)]


def test_keys_stay_together_and_the_shared_queue_is_one_place():
    table = pa.table({"user": ["ann", "bob"] * 20})
    batches, _ = emitted(emitter_of(next={"grouping": "key", "key": "user"}), table)
    for batch in batches:
        assert batch.events % 20 == 0
    coded = pa.table({"user": table["user"].dictionary_encode()})
    again, _ = emitted(emitter_of(next={"grouping": "key", "key": "user"}), coded)
    assert [one.replica for one in again] == [one.replica for one in batches]
    (batch,), _ = emitted(emitter_of(next={"grouping": "pull"}), table)
    assert (batch.replica, batch.events) == (SHARED_QUEUE, 40)


def test_events_without_the_successors_key_are_refused():
    emitter = emitter_of(next={"grouping": "key", "key": "user"})
    with pytest.raises(InvalidInputError, match="'next' needs 'user', and what comes from 'work'"):
        emitter.divide(pa.table({"n": [1]}))


def test_no_events_are_for_nobody_whatever_edges_look_at():
    emitter = emitter_of(
        next={"grouping": "key", "key": "user"},
        large={"when": lambda batch: pc.greater_equal(batch["n"], 900)},
    )
    assert emitted(emitter, to_table(None)) == ([], {"next": 0, "large": 0})


def test_tables_whose_columns_do_not_go_together_stay_apart():
    whole, text = pa.table({"n": [1, 2]}), pa.table({"n": ["three"]})
    assert [table.num_rows for table in together([whole, whole])] == [4]
    assert [table.num_rows for table in together([whole, text])] == [2, 1]
    assert together([]) == []
