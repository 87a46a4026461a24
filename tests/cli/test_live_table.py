"""The live table of a run on the command line."""

from elastream.cli.render.live_table import of_cycle
from elastream.control import Cycle, Outcome
from elastream.core.pipeline import Pipeline
from elastream.core.stats import IntervalStats, SourceStats

MEASURED = IntervalStats(0, 1.0, {"orders": SourceStats(emitted=200, queued=0)}, {}, {})


def topology():
    pipeline = Pipeline("shop")
    pipeline.add(len, name="price", after=pipeline.source("orders"))
    return pipeline.topology()


def test_a_cycle_that_was_skipped_says_why():
    last = Cycle(22.4, Outcome.SKIPPED, "the run ends", MEASURED)
    assert of_cycle(topology(), last).title == "shop, 22 s: the run ends"


def test_before_the_first_measurement_the_note_is_below():
    table = of_cycle(topology(), Cycle(0.2, Outcome.SKIPPED, "no time has passed"))
    assert table.title == "shop, 0 s: skipped"
    assert table.caption == "no time has passed"
