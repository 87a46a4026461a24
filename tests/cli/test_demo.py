"""The demo, with the simulator in the place of Spark: what it runs, shows and draws."""

from dataclasses import replace

from elastream.cli import spark_run
from elastream.cli.commands import demo


def test_ours_and_pa_sps_run_on_the_same_input_and_are_compared(elastream, tmp_path, monkeypatch):
    asked, results = [], []

    def simulated(run, target, place):
        asked.append((run, place))
        sampled = replace(run.settings, sample=place.settings["sample"])
        results.append(replace(run, settings=sampled).simulate())
        return results[-1], None

    monkeypatch.setattr(spark_run, "run_on_spark", simulated)
    monkeypatch.setattr(demo, "SECONDS", 24.0)
    ended = elastream("demo", "--out", tmp_path)
    assert ended.code == 0, ended.err
    ours, theirs = (run for run, _ in asked)
    assert (ours.policy.name, ours.predictor.name, ours.td) == ("slo", "auto", 0.25)
    assert (theirs.policy.name, theirs.td, theirs.look_back) == ("pa-sps", 2.0, 12)
    assert (ours.trace.values == theirs.trace.values).all()
    assert [place.settings["sample"] for _, place in asked] == [1.0, 1 / 3]
    # 30 s of the trace, in samples of 5 s: six in every interval, and six in every forecast.
    assert theirs.td * demo.SPEED == 30
    assert {len(stats.samples) for stats in results[1].stats} == {6}
    assert len({place.state for _, place in asked}) == 2
    for line in (
        "slo, 500 ms, with auto, on Spark",
        "PA-SPS as published, with lr, on Spark",
        "fixed at 4",
        "decides every 30 s of the trace, which are 2 s at this speed",
    ):
        assert line in ended.out
    assert "of 500 ms" in ended.out
    for picture in ("comparison.png", "run.png"):
        assert (tmp_path / picture).stat().st_size > 1_000


def test_a_file_is_no_place_for_the_demo(elastream, tmp_path):
    file = tmp_path / "mine"
    file.write_text("mine")
    ended = elastream("demo", "--out", file)
    assert (ended.code, ended.err) == (2, f"elastream: --out {file}: it is a file; name a folder\n")
    assert file.read_text() == "mine"
