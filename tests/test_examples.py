import runpy
import sys
from pathlib import Path

import pyarrow as pa

ROOT = Path(__file__).parent.parent
FIRST = ROOT / "examples" / "first_pipeline.py"


def test_the_readme_shows_the_first_pipeline_as_it_is():
    code = FIRST.read_text().split('"""\n\n', 1)[1]
    assert code in (ROOT / "README.md").read_text()


def test_the_first_pipeline_does_what_it_says():
    example = runpy.run_path(str(FIRST))
    topology = example["pipeline"].topology()
    priced = topology.by_name["price"].function(example["sources"]["orders"](0, 20))
    assert priced["total"][7].as_py() == 8 * 19.9
    (condition,) = (edge.when for edge in topology.incoming["alert"])
    large = priced.filter(condition(priced))
    assert large.num_rows == 6
    told = topology.by_name["alert"].function(large.to_pylist())
    assert told[0] == {"id": 7, "text": "a large order: 159.20"}
    assert isinstance(priced, pa.Table)


def test_policies_are_compared_in_a_few_lines(capsys):
    runpy.run_path(str(ROOT / "examples" / "compare_policies.py"))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["presps", "pa-sps", "autoscale+"]
    assert "elastream.engines.simulation" in sys.modules


def test_dataframes_go_through_a_pipeline(spark_session, tmp_path, capsys):
    example = runpy.run_path(str(ROOT / "examples" / "dataframes.py"))
    example["run"](spark_session, tmp_path, enough=1000)
    rows = spark_session.read.parquet(str(tmp_path / "hot")).collect()
    assert "hot readings" in capsys.readouterr().out
    assert rows
    assert all(row.celsius > 30 for row in rows)
    assert len({row.value for row in rows}) == len(rows)
