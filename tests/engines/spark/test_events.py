import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from elastream.engines.spark.births import Births
from elastream.engines.spark.worker.events import Events, input_of, to_table, together
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


def test_what_takes_no_events_is_refused():
    class Price:
        """It forgot its `__call__`."""

    class Store:
        def __call__(self): ...

    with pytest.raises(InvalidInputError, match="'Price' has no __call__ that takes events"):
        input_of(Price)
    with pytest.raises(InvalidInputError, match="takes events"):
        input_of(Store())
    with pytest.raises(InvalidInputError, match="'<lambda>' has no parameter that takes events"):
        input_of(lambda: [1])
    for built_in in (len, list):
        assert input_of(built_in)(TABLE) is TABLE


def test_a_function_may_return_tables_frames_rows_or_nothing():
    assert to_table(TABLE) is TABLE
    assert to_table(TABLE.to_pandas()).equals(TABLE)
    assert to_table(TABLE.to_pylist()).equals(TABLE)
    assert to_table(TABLE.to_batches()[0]).equals(TABLE)
    assert to_table(None).num_rows == to_table([]).num_rows == 0
    with pytest.raises(InvalidInputError, match="the operator 'op' returned int"):
        to_table(3, "op")


def test_rows_with_different_columns_give_all_of_them_with_nulls():
    table = to_table([{"n": 1}, {"word": "b", "n": 2}, {}])
    assert table.to_pydict() == {"n": [1, 2, None], "word": [None, "b", None]}


@pytest.mark.parametrize("row", [7, "text", [("n", 1)], None])
def test_a_list_with_something_else_than_rows_is_refused(row):
    kind = type(row).__name__
    with pytest.raises(
        InvalidInputError, match=f"a list with {kind} in it, but each row must be a"
    ):
        to_table([{"n": 1}, row])


def events(table, born=1.0):
    return Events(table, Births.evenly(table.num_rows, born))


def test_events_go_together_with_their_births():
    joined, *more = together([events(TABLE, 1.0), events(TABLE.slice(0, 1), 2.0)])
    assert more == []
    assert joined.table["n"].to_pylist() == [1, 2, 3, 1]
    assert joined.births.times().tolist() == [1.0, 1.0, 1.0, 2.0]


def test_tables_whose_columns_do_not_go_together_stay_apart():
    whole, text = events(pa.table({"n": [1, 2]})), events(pa.table({"n": ["three"]}))
    assert [each.table.num_rows for each in together([whole, whole])] == [4]
    assert together([whole, text]) == [whole, text]
    assert together([]) == []


def test_a_column_that_some_lack_is_null_there():
    (joined,) = together([events(pa.table({"n": [1]})), events(pa.table({"n": [2], "m": [3]}))])
    assert joined.table.to_pydict() == {"n": [1, 2], "m": [None, 3]}
