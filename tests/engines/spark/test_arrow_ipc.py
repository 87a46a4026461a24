import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.births import Births
from elastream.engines.spark.worker.events import Events, together

WORDS = pa.array(["a", "b", "a", None])
TABLES = {
    "plain": pa.table({"n": [1, 2, 3], "word": ["a", "b", "c"]}),
    "nested": pa.table({"n": [[1], [], None], "s": [{"x": 1.5}, {"x": None}, None]}),
    "times": pa.table({"at": [datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)]}),
    "frame": pa.Table.from_pandas(pd.DataFrame({"n": [1, 2]}, index=[7, 9])),
    "slice": pa.table({"n": range(100), "word": ["abc"] * 100}).slice(40, 7),
    "categories": pa.Table.from_pandas(pd.DataFrame({"c": pd.Categorical(["x", "y", "x"])})),
    "categories inside": pa.table(
        {"s": pa.StructArray.from_arrays([WORDS.dictionary_encode()], ["word"])}
    ),
    "no events": pa.table({"n": pa.array([], pa.int64())}),
    "no columns": pa.table({}),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_survives_its_journey(name):
    arrived = from_bytes(to_bytes(TABLES[name]))
    assert arrived.equals(TABLES[name], check_metadata=True)
    arrived.validate(full=True)


def test_it_is_a_stream_that_anybody_can_read():
    data = to_bytes(TABLES["plain"])
    assert pa.ipc.open_stream(data).read_all().equals(TABLES["plain"])


@pytest.mark.parametrize("second", [["c", "a"], ["b"], []])
def test_tables_in_pieces_arrive_as_one(second):
    plain = [pa.table({"word": words}) for words in (["a", "b"], pa.array(second, pa.string()))]
    coded = [pa.table({"word": part["word"].dictionary_encode()}) for part in plain]
    for parts in (plain, coded):
        births = [Births.evenly(part.num_rows, 0.0) for part in parts]
        (whole,) = together(list(map(Events, parts, births)))
        arrived = from_bytes(to_bytes(whole.table))
        assert arrived["word"].to_pylist() == ["a", "b", *second]


def test_what_is_passed_on_as_it_is_need_not_be_written_again():
    data = to_bytes(TABLES["plain"])
    assert to_bytes(from_bytes(data)) is data


def test_rows_that_follow_each_other_are_not_copied():
    data = to_bytes(TABLES["plain"])
    before = pa.total_allocated_bytes()
    part = from_bytes(data, np.array([1, 2]))
    assert pa.total_allocated_bytes() == before
    assert part.to_pylist() == TABLES["plain"].to_pylist()[1:]
    assert from_bytes(to_bytes(part)).equals(part)


def test_rows_apart_from_each_other_are_found():
    data = to_bytes(TABLES["plain"])
    assert from_bytes(data, np.array([0, 2]))["n"].to_pylist() == [1, 3]
