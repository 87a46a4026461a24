"""The remedy that a gap's error names is there in every command that reads a trace."""

import pytest


@pytest.fixture
def with_gap(tmp_path):
    file = tmp_path / "gap.csv"
    seconds = [second for second in range(90) if second not in (40, 41)]
    file.write_text("time,value\n" + "".join(f"{second},500\n" for second in seconds))
    return file


def commands(file, out):
    return {
        "traces": ["traces", file],
        "simulate": ["simulate", "--trace", file],
        "experiment": ["experiment", "run", "presps-3", "--trace", f"spiky={file}", "--out", out],
        "predict": ["predict", "--samples", file],
        "backtest": ["backtest", "--models", "basic", "--trace", file, "--look-back", 12],
    }


@pytest.mark.parametrize("name", ["traces", "simulate", "experiment", "predict", "backtest"])
def test_a_gap_is_refused_and_filled_when_asked_to(elastream, with_gap, tmp_path, name):
    command = commands(with_gap, tmp_path)[name]
    refused = elastream(*command)
    assert refused.code == 2
    assert "gap.csv:42: 2 steps of 1 s missing" in refused.err
    assert "--fill-gaps" in refused.err
    assert elastream(*command, "--fill-gaps").code == 0
