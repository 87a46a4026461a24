"""Plots say how good the bands are that they show."""

import re

import numpy as np
import pytest

from elastream.cli.render import plots
from elastream.control.expectation import BandQuality
from elastream.control.run import Run
from elastream.policies import POLICIES
from elastream.policies.slo import slo
from elastream.predictors import PREDICTORS
from elastream.predictors.backtest import backtest
from elastream.workloads.applications import twitter
from elastream.workloads.traces import evenly

TOLD = re.compile(r", (\d+)% in the band, pinball loss [\d,]+\.\d$")


@pytest.fixture
def titles(monkeypatch):
    """Of all panels that were drawn."""
    found = []

    def noted(figure, file):
        found.extend(axes.get_title(loc="left") for axes in figure.axes)
        return file

    monkeypatch.setattr(plots, "save", noted)
    return found


def run(seconds, td):
    noise = np.random.default_rng(0).poisson(500.0, seconds)
    return Run(twitter(), evenly(noise), POLICIES["pa-sps"](), PREDICTORS["auto"](), td).simulate()


@pytest.mark.parametrize("td", [0.25, 2.0])
def test_a_run_and_a_comparison_say_how_good_their_band_is(titles, tmp_path, td):
    result = run(200, td)
    plots.draw_run(result, tmp_path / "run.png")
    plots.draw_comparison({"one": result}, tmp_path / "both.png")
    quality = BandQuality.over(result.cycles)
    told = f"input (events/s), {quality.coverage:.0%} in the band, "
    told += f"pinball loss {quality.pinball:,.1f}"
    assert titles.count(told) == 2
    assert 0.8 < quality.coverage < 1


def test_without_a_band_there_is_nothing_to_say(titles, tmp_path):
    result = run(4, 2.0)
    plots.draw_run(result, tmp_path / "run.png")
    assert titles[0] == "input (events/s)"


def test_a_backtest_says_how_good_each_band_is(titles, tmp_path):
    noise = evenly(np.random.default_rng(0).poisson(500.0, 300).astype(float))
    results = [backtest(PREDICTORS[name](), noise.values, 6) for name in ("basic", "lr")]
    plots.draw_backtest(noise, results, tmp_path)
    assert [title.partition(":")[0] for title in titles] == ["basic", "lr"]
    assert all(TOLD.search(title) for title in titles)


def test_a_run_under_an_objective_shows_it(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(plots, "save", lambda figure, file: drawn.append(figure.axes[-1]))
    for policy in (slo("250 ms", quantile=0.95), POLICIES["pa-sps"]()):
        made = Run(twitter(), evenly(np.full(10, 500.0)), policy, PREDICTORS["basic"](), 1.0)
        plots.draw_run(made.simulate(), tmp_path / "run.png")
    lines = [{line.get_label(): line.get_ydata()[0] for line in axes.lines} for axes in drawn]
    assert lines == [{"the objective, at p95": 250.0}, {}]
