import pytest


@pytest.fixture
def pipeline(tmp_path):
    file = tmp_path / "orders.py"
    file.write_text(
        "import time\n"
        "import pyarrow as pa\n"
        "from elastream import Pipeline\n"
        "pipeline = Pipeline('orders')\n"
        "orders = pipeline.source('orders')\n"
        "@pipeline.operator(after=orders)\n"
        "def price(batch: pa.Table) -> pa.Table:\n"
        "    time.sleep(0.01)\n"
        "    return batch\n"
        "@pipeline.operator(after=price, when=lambda batch: [n % 2 == 0 for n in\n"
        "    batch['n'].to_pylist()], setup=lambda: 'resource')\n"
        "def alert(rows: list, resource) -> list:\n"
        "    assert resource == 'resource'\n"
        "    return rows\n"
        "sources = {'orders': lambda first, count: pa.table({'n': range(first, first + count)})}\n"
    )
    return f"{file}:pipeline"


def test_every_operator_is_measured_on_the_events_that_reach_it(elastream, pipeline):
    ended = elastream("benchmark", pipeline, "--events", "100", "--repeats", "3")
    assert ended.code == 0, ended.err
    price, alert = (line.split() for line in ended.out.splitlines()[1:3])
    assert price[:2] == ["price", "100"]
    assert float(price[2]) >= 0.1
    assert alert[:2] == ["alert", "50"]


def test_a_pipeline_that_is_not_there_is_named(elastream):
    ended = elastream("benchmark", "nothing.py:pipeline")
    assert ended.code == 2
    assert "nothing.py: there is no such file" in ended.err
