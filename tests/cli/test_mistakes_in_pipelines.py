"""What a user's own code does wrong is told in one line, with its place."""

import re
import sys

import pyarrow as pa
import pytest

from elastream import Pipeline, replay
from elastream.cli.rehearsal import rehearse
from elastream.errors import InvalidInputError

HEAD = (
    "import pyarrow as pa\n"
    "from elastream import Pipeline\n"
    "pipeline = Pipeline('orders')\n"
    "orders = pipeline.source('orders')\n"
    "sources = {'orders': lambda first, count: pa.table({'n': range(first, first + count)})}\n"
)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("def price(:\n", 1, "it cannot be imported: SyntaxError: invalid syntax"),
        ("\nimport no_such_module\n", 2, "it cannot be imported: ModuleNotFoundError: No module"),
        (
            HEAD + "@pipeline.operator(after=orders)\n"
            "def price(row: dict) -> dict:\n"
            "    return {'n': 1 / (row['n'] * 0)}\n",
            8,
            "the operator 'price' fails: ZeroDivisionError",
        ),
        (
            HEAD + "@pipeline.operator(after=orders)\n"
            "async def price(row: dict) -> dict:\n"
            "    return {'n': row['pieces']}\n",
            8,
            "the operator 'price' fails: KeyError: 'pieces'; measure it with events on which",
        ),
        (
            HEAD + "class Price:\n"
            "    def setup(self):\n"
            "        raise OSError('no database')\n"
            "    def __call__(self, row: dict) -> dict:\n"
            "        return row\n"
            "pipeline.add(Price, after=orders)\n",
            8,
            "the operator 'Price' fails: OSError: no database",
        ),
        (
            HEAD + "@pipeline.operator(after=orders, when=lambda batch: batch['pieces'])\n"
            "def price(row: dict) -> dict:\n"
            "    return row\n",
            6,
            "the condition of the edge orders -> price fails: KeyError",
        ),
        (
            HEAD + "pipeline.add(list, name='all', after=orders)\n"
            "def make(first, count):\n"
            "    raise OSError('no disk')\n"
            "sources = {'orders': make}\n",
            8,
            "make(0, 1000) of the source 'orders' fails: OSError: no disk",
        ),
    ],
)
def test_the_line_that_fails_is_named_without_a_stack_trace(elastream, tmp_path, text, line, told):
    file = tmp_path / "orders.py"
    file.write_text(text)
    ended = elastream("simulate", f"{file}:pipeline", "--duration", "5")
    assert ended.code == 2
    assert ended.err.startswith(f"elastream: {file}:{line}: {told}")
    assert ended.err.count("\n") == 1


def test_a_pipeline_is_measured_with_the_events_on_which_it_works(elastream, tmp_path):
    file = tmp_path / "orders.py"
    file.write_text(
        HEAD + "@pipeline.operator(after=orders)\n"
        "def price(row: dict) -> dict:\n"
        "    return {'n': 1 / (row['n'] - 7)}\n"
    )
    ended = elastream("simulate", f"{file}:pipeline", "--duration", "5")
    assert ended.code == 0
    told = f"{file}:8: the operator 'price' fails on 1 of 1,000 events, and is measured with the "
    assert f"elastream: {told}others: ZeroDivisionError" in ended.err


def test_a_module_next_to_the_pipeline_can_be_imported(elastream, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "prices_of_this_shop.py").write_text("def price(batch):\n    return batch\n")
    file = tmp_path / "orders.py"
    file.write_text(
        HEAD + "from prices_of_this_shop import price\npipeline.add(price, after=orders)\n"
    )
    ended = elastream("simulate", f"{file}:pipeline", "--duration", "5")
    assert ended.code == 0, ended.err


def test_a_key_that_no_event_has_is_told_before_a_run(elastream, tmp_path):
    file = tmp_path / "orders.py"
    file.write_text(
        HEAD + "@pipeline.operator(after=orders, grouping='key', key='user')\n"
        "def price(row: dict) -> dict:\n"
        "    return row\n"
    )
    ended = elastream("simulate", f"{file}:pipeline", "--duration", "5")
    assert ended.code == 2
    assert "'price' needs 'user', but events from 'orders' have only the columns: n" in ended.err


def test_what_makes_events_must_make_tables(elastream, tmp_path):
    file = tmp_path / "orders.py"
    file.write_text(
        HEAD + "pipeline.add(list, name='all', after=orders)\n"
        "sources = {'orders': lambda first, count: [1]}\n"
    )
    ended = elastream("simulate", f"{file}:pipeline", "--duration", "5")
    assert ended.code == 2
    told = "make(first, count) must return a pyarrow.Table, not list"
    assert told in ended.err
    with pytest.raises(InvalidInputError, match=re.escape(told)):
        _ = replay(lambda first, count: [1]).columns


def test_events_go_to_the_successor_that_the_function_names():
    def route(row: dict):
        return ("rare" if row["n"] % 4 == 0 else "usual", row)

    def same(row: dict) -> dict:
        return {"n": row["n"]}

    pipeline = Pipeline("orders")
    routed = pipeline.add(route, after=pipeline.source("orders"))
    for name in ("rare", "usual"):
        pipeline.add(same, name=name, after=routed)
    make = {"orders": lambda first, count: pa.table({"n": range(first, first + count)})}
    found = rehearse(pipeline.topology(), make, events=100, repeats=1)
    assert {name: of.events for name, of in found.operators.items()} == {
        "route": 100,
        "rare": 25,
        "usual": 75,
    }
    assert found.splits == {("route", "rare"): 0.25, ("route", "usual"): 0.75}


@pytest.mark.parametrize("call", ["session(pipeline)", "run(pipeline, sources)"])
def test_a_program_that_starts_when_imported_is_refused_with_the_remedy(elastream, tmp_path, call):
    file = tmp_path / "orders.py"
    file.write_text(
        HEAD + f"import elastream\npipeline.add(list, name='all', after=orders)\nelastream.{call}\n"
    )
    for command in ("explain", "simulate", "run"):
        ended = elastream(command, f"{file}:pipeline")
        assert ended.code == 2
        told = f"elastream: {file}:8: elastream.{call.partition('(')[0]} is called when the file"
        assert ended.err.startswith(told)
        assert "under if __name__ == '__main__'" in ended.err
        assert ended.err.count("\n") == 1


def test_what_is_misspelt_is_told_before_functions_are_measured(elastream, tmp_path):
    file = tmp_path / "orders.py"
    file.write_text(HEAD + "pipeline.add(lambda rows: 1 / 0, name='all', after=orders)\n")
    for option, told in (("--policy", "'slow'"), ("--predictor", "'lrr'"), ("--guard", "'pauze'")):
        ended = elastream("simulate", f"{file}:pipeline", option, told.strip("'"))
        assert ended.code == 2
        assert told in ended.err
