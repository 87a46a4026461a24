import json
import re
from pathlib import Path

import pytest

KEYS = {
    "saved_resources",
    "throughput_degradation",
    "processed_ratio",
    "latency_ms",
    "input_error",
    "replica_error",
    "replica_seconds",
    "executor_seconds",
    "rescales",
    "events_in",
    "events_out",
    "events_set_aside",
    "cost",
    "extra_cost",
    "cpu_seconds",
}


@pytest.fixture
def simulated(elastream):
    def run(*options):
        ended = elastream("simulate", *options, "--json")
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    return run


def test_one_json_object_has_all_measures(simulated):
    measured = simulated("--policy", "pa-sps", "--predictor", "lr")
    assert set(measured) == KEYS
    assert set(measured["latency_ms"]) == {"mean", "p50", "p95", "p99"}
    assert measured["processed_ratio"] > 0.985
    assert 0.4 < measured["saved_resources"] < 0.7


def test_fixed_replicas_save_little_or_process_little(simulated):
    one = simulated("--policy", "static", "--replicas", 1)
    eight = simulated("--policy", "static", "--replicas", 8)
    assert 0.31 < one["processed_ratio"] < 0.35
    assert one["saved_resources"] == 0.875
    assert eight["processed_ratio"] >= 0.999
    assert eight["saved_resources"] == 0
    assert eight["rescales"] == 0


def test_the_oracle_is_the_limit(simulated):
    best = simulated("--policy", "oracle")
    assert best["replica_error"] < 0.02
    assert simulated("--policy", "presps")["latency_ms"]["mean"] > best["latency_ms"]["mean"]


def test_restarts_lose_events(simulated):
    calm = simulated("--policy", "autoscale+", "--predictor", "regression")
    restarted = simulated(
        "--policy", "autoscale+", "--predictor", "regression", "--downtime", 5, "--time-out", 30
    )
    assert restarted["processed_ratio"] < calm["processed_ratio"] - 0.02


def test_a_table_and_a_drawing_for_people(elastream, tmp_path):
    ended = elastream("simulate", "--app", "twitter-complex", "--out", tmp_path)
    assert ended.code == 0
    assert "latency p99" in ended.out
    assert (tmp_path / "simulation.png").stat().st_size > 10_000


def test_a_silent_trace_is_measured_too(simulated, tmp_path):
    file = tmp_path / "silent.csv"
    file.write_text("time,value\n" + "".join(f"{second},0\n" for second in range(90)))
    measured = simulated("--trace", file)
    assert measured["latency_ms"] is None
    assert measured["events_in"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--app", "twiter"], "unknown application 'twiter': did you mean 'twitter'?"),
        (["--trace", "nowhere.csv"], "nowhere.csv: there is no such file"),
        (["--policy", "pasps"], "unknown policy 'pasps'"),
        (["--predictor", "an"], "unknown predictor 'an'"),
        (["--predictor", "lr,fft"], "lr,fft: name one model"),
        (["--seed", "-1"], "the seed -1: it must be 0 or more"),
        (["--predictor", "lstm"], "needs a trained model"),
        (["--td", "0"], "--td 0: it must be between 0.1 s and"),
        (["--td", "1e9"], "--td 1e+09: it must be between 0.1 s and"),
        (["--service-ms", "-1"], "--service-ms -1: it must be 0 or more"),
        (["--pool", "0"], "--pool 0: a pool has at least 1 replica"),
        (["--look-back", "1"], "--look-back 1: a forecast needs at least 2 samples"),
        (["--replicas", "3"], "--replicas 3: only the policy static takes it"),
        (["--policy", "static"], "the policy static needs --replicas"),
        (["--policy", "static", "--replicas", "9"], "--replicas 9: the pool of 'stop-words' holds"),
        (["--policy", "static", "--replicas", "0"], "replicas=0 must be a whole number"),
        (["--sample", "0"], "sample=0.0: it must be above 0"),
        (["--on-full", "lose"], "unknown choice for on_full 'lose': There are: block, drop"),
        (["--duration", "0"], "duration 0: it must be above 0"),
        (["--initial", "many"], "--initial many: write OPERATOR=COUNT, or COUNT for all"),
        (["--initial", "sentimnt=2"], "in --initial 'sentimnt': did you mean 'sentiment'?"),
        (["--initial", "sentiment=99"], "--initial: 99 replicas of 'sentiment': give 1 to "),
        (["--guard", "cooldwn"], "did you mean 'cooldown'?"),
        (["--downtime", "-1"], "restart_downtime=-1.0: it must be 0 s or more"),
        (["--port", "9000"], "--port changes nothing without --serve: add that, too"),
        (["--pace", "9"], "--pace changes nothing without --serve"),
        (["--executor-lead", "3"], "--executor-lead changes nothing without --executors"),
        (["--executors", "8:1"], "--executors 8:1: give the fewest and the most, as 1:8"),
        (["--downtime", "1", "--executors", "1:4"], "restart_downtime=1.0: with executors"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(elastream, options, message):
    ended = elastream("simulate", *options)
    assert ended.code == 2
    assert message in ended.err
    assert len(ended.err.strip().splitlines()) == 1


def test_an_objective_is_kept(simulated):
    told = simulated("--policy", "slo", "--objective-ms", 250, "--trace", "step")
    assert told["latency_ms"]["p99"] < 250


def test_an_objective_that_was_missed_is_told_with_what_may_help(elastream):
    options = ("--trace", "step", "--duration", "120", "--objective-ms", 250)
    kept = elastream("simulate", *options)
    assert "objective" not in kept.err
    missed = elastream("simulate", *options, "--pool", 1, "--json")
    assert missed.code == 0
    assert re.search(r"p99 was [\d,]+ ms: the objective of 250 ms was missed", missed.err)
    assert "every replica of 'stop-words' was active for 100% of the time" in missed.err
    json.loads(missed.out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--policy", "pa-sps", "--objective-ms", 250),
            "--objective-ms 250: only the policy slo takes it",
        ),
        (("--policy", "slo", "--objective-ms", 0), "--objective-ms 0: it must be above 0"),
        (("--policy", "slo", "--quantile", 1), "quantile=1.0 must be at least 0.5 and below 1"),
    ],
)
def test_an_objective_that_cannot_be_is_refused(elastream, options, message):
    ended = elastream("simulate", *options)
    assert ended.code != 0
    assert message in ended.err


OWN = """
from elastream import Pipeline

pipeline = Pipeline("orders")

@pipeline.operator(after=pipeline.source("orders"), pool=8, execution_time=0.001)
def price(row: dict) -> dict:
    return row
"""


def test_a_pipeline_of_ones_own_is_simulated(simulated, tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    told = simulated(f"{tmp_path}/mine.py:pipeline", "--trace", "step", "--policy", "pa-sps")
    assert told["processed_ratio"] > 0.95
    slower = simulated(
        f"{tmp_path}/mine.py:pipeline", "--trace", "step", "--policy", "pa-sps", "--service-ms", 3
    )
    assert slower["replica_seconds"] > 1.5 * told["replica_seconds"]


def test_what_a_pipeline_does_not_declare_is_measured_with_its_events(simulated):
    example = Path(__file__).parents[2] / "examples" / "first_pipeline.py"
    told = simulated(f"{example}:pipeline", "--trace", "step")
    assert told["processed_ratio"] > 0.95
    assert simulated(f"{example}:pipeline", "--trace", "step", "--service-ms", 1)["events_out"] > 0


def test_what_cannot_be_measured_must_be_declared(elastream, tmp_path):
    (tmp_path / "mine.py").write_text(OWN.replace(", execution_time=0.001", ""))
    ended = elastream("simulate", f"{tmp_path}/mine.py:pipeline")
    assert ended.code == 2
    assert "declare its execution_time=" in ended.err


def test_guards_limit_a_simulation(simulated):
    free = simulated("--policy", "presps")
    calm = simulated("--policy", "presps", "--guard", "cooldown:up=600,down=600")
    assert calm["rescales"] < free["rescales"] / 2


def test_a_simulation_begins_with_the_replicas_that_were_asked_for(simulated):
    options = ("--policy", "pa-sps", "--trace", "step", "--td", 30, "--duration", 30)
    least = simulated(*options, "--initial", 1)["replica_seconds"]
    assert simulated(*options, "--initial", 3)["replica_seconds"] == 3 * least
    # 1,000 events/s of 1.3 ms need two at each of four operators.
    assert simulated(*options)["replica_seconds"] == 2 * least
    one = simulated(*options, "--initial", "sentiment=3")["replica_seconds"]
    assert one == pytest.approx(9 / 4 * least)


def test_full_queues_drop_events_if_they_may(simulated):
    options = ("--policy", "static", "--replicas", 1, "--queue-size", 100)
    blocked, dropped = simulated(*options), simulated(*options, "--on-full", "drop")
    assert blocked["latency_ms"]["p99"] > dropped["latency_ms"]["p99"]
