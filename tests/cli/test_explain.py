import pytest
from typer.testing import CliRunner

from elastream.cli import app, main
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker.deployment import Deployment

CODE = """
import pyarrow as pa
from elastream import Pipeline

pipeline = Pipeline("orders", chaining="auto")
orders = pipeline.source("orders")

@pipeline.operator(after=orders, pool=4)
def parse(table): return table

@pipeline.operator(after=parse, pool=4)
def clean(table): return table

@pipeline.operator(after=clean, pool=4, chain=False, when=lambda table: table["id"])
def store(table): return table

def make(first, count): return pa.table({"id": range(first, first + count)})

sources = {"orders": make}
"""


@pytest.fixture
def pipeline(tmp_path):
    file = tmp_path / "explained.py"
    file.write_text(CODE)
    return f"{file}:pipeline"


def explained(*words):
    done = CliRunner().invoke(app, ["explain", *words])
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def test_it_draws_the_pipeline_and_says_why_it_is_chained_so(pipeline):
    lines = explained(pipeline, "--measure")
    assert lines[:3] == [
        "orders",
        "└──> [parse → clean]  1 to 4 replicas, 16 lanes, next-free",
        "    └─ when ─> store  1 to 4 replicas, 16 lanes, next-free",
    ]
    assert any(line.startswith("parse -> clean: chained (") for line in lines)
    assert "clean -> store: a hop (chain=False)" in lines
    assert lines[-1].startswith("task slots: 20,")


def test_without_a_measurement_auto_says_what_it_lacks(pipeline):
    lines = explained(pipeline)
    expected = "parse -> clean: a hop (nothing was measured or declared yet (execution_time=...))"
    assert expected in lines
    assert "?: unknown; --measure tries the functions, or declare execution_time=" in lines


def test_a_pipeline_whose_module_has_no_sources_can_be_explained(tmp_path):
    file = tmp_path / "declared.py"
    file.write_text(CODE.replace('sources = {"orders": make}', ""))
    lines = explained(f"{file}:pipeline")
    assert lines[0] == "orders"
    assert lines[-1].startswith("task slots: 28,")
    assert lines[-1].endswith("for each source that is a DataFrame, one more")


def test_a_shared_queue_is_one_lane_in_the_tree_and_in_the_table(tmp_path):
    file = tmp_path / "pulled.py"
    file.write_text(CODE.replace("after=parse, pool=4", 'after=parse, pool=4, grouping="pull"'))
    lines = explained(f"{file}:pipeline")
    assert any("clean  1 to 4 replicas, 1 shared lane, pull" in line for line in lines)
    (row,) = [line for line in lines if line.startswith("clean ") and "->" not in line]
    assert "1 shared" in row
    assert "16" not in row


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_it_draws_into_a_file(pipeline, tmp_path, kind):
    file = tmp_path / f"picture.{kind}"
    assert explained(pipeline, "--plot", str(file))[-1] == f"drawn in {file}"
    assert file.stat().st_size > 1_000


def test_a_state_keeps_its_chains(tmp_path, pipeline):
    made = Pipeline("orders")
    made.add(len, name="parse", after=made.source("orders"), pool=4)
    made.add(len, name="clean", after="parse", chain=True)
    made.add(len, name="store", after="clean", pool=4)
    backend = open_backend(tmp_path / "state")
    deployment = Deployment(made.topology(), {}, Options(), backend)
    backend.prepare("orders", deployment.layout)
    assert backend.layout()["clean"].chained_to == "parse"
    lines = explained(pipeline, "--state", str(tmp_path / "state"), "--measure")
    assert any("[parse → clean]" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--plot", "picture.bmp"], "name a file that ends in .png or .svg"),
        (["--state", "nowhere"], "there is no state nowhere"),
    ],
)
def test_mistakes_are_named(pipeline, monkeypatch, capsys, words, problem):
    monkeypatch.setattr("sys.argv", ["elastream", "explain", pipeline, *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


def test_a_function_that_cannot_run_is_refused(tmp_path, monkeypatch, capsys):
    file = tmp_path / "odd.py"
    file.write_text(CODE.replace("def clean(table)", "def clean(table: int)"))
    monkeypatch.setattr("sys.argv", ["elastream", "explain", f"{file}:pipeline"])
    with pytest.raises(SystemExit):
        main()
    assert (
        "operator 'clean': the function 'clean' asks for <class 'int'>" in capsys.readouterr().err
    )


def test_events_of_sources_that_nothing_makes_cannot_be_measured(tmp_path, monkeypatch, capsys):
    file = tmp_path / "fed.py"
    file.write_text(CODE.replace('{"orders": make}', '{"orders": [make(0, 3)]}'))
    monkeypatch.setattr("sys.argv", ["elastream", "explain", f"{file}:pipeline", "--measure"])
    with pytest.raises(SystemExit):
        main()
    assert "nothing makes the events of orders" in capsys.readouterr().err
