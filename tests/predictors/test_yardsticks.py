import numpy as np

from elastream.predictors.backtest import backtest
from elastream.predictors.yardsticks import SameTime, WindowMean, yardsticks


def test_a_series_has_the_yardsticks_that_it_is_long_enough_for():
    assert [each.name for each in yardsticks(1.0, 1_301)] == ["(last value)", "(mean of 12)"]
    names = [each.name for each in yardsticks(300.0, 60 * 288)]
    assert names[2:] == ["(a day before)", "(a week before)"]


def test_the_same_time_a_season_before_is_exact_for_what_repeats():
    series = np.tile([3.0, 9.0, 1.0, 5.0, 4.0], 40)
    assert backtest(SameTime(5, "(season)"), series, horizon=7, history=10).rmse == 0
    assert backtest(WindowMean(5), series, horizon=7, history=10).rmse > 1
