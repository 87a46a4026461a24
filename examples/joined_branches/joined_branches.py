"""Two sources, a branch, and Spark's own stream-stream join of the outputs.

    python examples/joined_branches/joined_branches.py

Ads are shown, and some are clicked. Operators clean both streams, each with its own pool; views by
bots take another branch. Spark joins the clicks with the ads that were shown: it keeps the
state that a join needs. It takes about a minute, and draws `joined_branches.png` next to this file.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

import elastream

CAMPAIGNS = ("bikes", "shoes", "books", "tea")
START = 1_760_000_000
VIEWS_PER_SECOND = 100
CLICK_EVERY = 5
"""One view in this many is clicked, some seconds later."""
LOOKUP_SECONDS = 0.002
"""How long it takes to look an agent up; here, this is only waited for."""


def make_views(first: int, count: int) -> pa.Table:
    """Ads that were shown: 100 per second of event time, one in ten to a bot."""
    numbers = range(first, first + count)
    return pa.table(
        {
            "view": numbers,
            "campaign": [CAMPAIGNS[number * 13 % 11 % len(CAMPAIGNS)] for number in numbers],
            "agent": ["crawler/2.1" if number % 10 == 5 else "browser/5.0" for number in numbers],
            "shown": seconds(number / VIEWS_PER_SECOND for number in numbers),
        }
    )


def make_clicks(first: int, count: int) -> pa.Table:
    """One click for every fifth view, 1 to 12 seconds after it; one in eight has no view."""
    numbers = range(first, first + count)
    return pa.table(
        {
            "view": [-1 if number % 8 == 7 else CLICK_EVERY * number for number in numbers],
            "clicked": seconds(
                CLICK_EVERY * number / VIEWS_PER_SECOND + 1 + number % 12 for number in numbers
            ),
        }
    )


def seconds(values: Any) -> pa.Array:
    """Points in event time."""
    micros = [round(1_000_000 * (START + value)) for value in values]
    return pa.array(micros, pa.timestamp("us", tz="UTC"))


pipeline = elastream.Pipeline("adverts")
views = pipeline.source("views")
clicks = pipeline.source("clicks")


@pipeline.operator(after=views, pool=4)
def classify(row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Look the agent up, and name the operator that the view goes to next."""
    time.sleep(LOOKUP_SECONDS)
    agent = row.pop("agent")
    return ("bots" if agent.startswith("crawler") else "shown"), row


@pipeline.operator(after=classify, pool=2)
def shown(batch: pa.Table) -> pa.Table:
    return batch.select(["view", "campaign", "shown"])


@pipeline.operator(after=classify, pool=1)
def bots(batch: pa.Table) -> pa.Table:
    return batch.group_by("campaign").aggregate([("view", "count")])


@pipeline.operator(after=clicks, pool=2)
def valid(batch: pa.Table) -> pa.Table:
    return batch.filter(pc.greater_equal(batch["view"], 0))


OUTPUTS = {
    "shown": "view long, campaign string, shown timestamp",
    "valid": "view long, clicked timestamp",
}


def joined(run: elastream.PipelineRun) -> DataFrame:
    """Every click with the view that it belongs to, if it came within ten seconds.

    The watermarks say how late an event may be; what is older than that, Spark forgets.
    """
    shown = run["shown"].withWatermark("shown", "20 seconds").alias("s")
    clicked = run["valid"].withWatermark("clicked", "20 seconds").alias("c")
    together = "s.view = c.view AND clicked BETWEEN shown AND shown + INTERVAL 10 SECONDS"
    return shown.join(clicked, expr(together)).select("s.view", "campaign", "shown", "clicked")


def run(folder: Path, duration: float = 30.0, **settings: Any) -> dict[str, Any]:
    """Run the pipeline and the join until the sources end."""
    load = elastream.trace("spiky", speed=1_301 / duration, scale=0.2)
    fewer = elastream.trace(load, scale=1 / CLICK_EVERY)
    with elastream.run(
        pipeline,
        {
            "views": elastream.replay(make_views, load),
            "clicks": elastream.replay(make_clicks, fewer),
        },
        state=folder / "state",
        policy="pa-sps",
        td=1.0,
        outputs=OUTPUTS,
        **settings,
    ) as going:
        clicked = joined(going)
        query = (
            clicked.writeStream.format("parquet")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start(str(folder / "joined"))
        )
        going.await_termination()
        query.processAllAvailable()
        query.stop()
    rows = clicked.sparkSession.read.parquet(str(folder / "joined")).collect()
    return {"run": going, "rows": rows}


def draw(result: dict[str, Any], target: Path) -> Path:
    """What came from both sources, the replicas, and the clicks of each campaign."""
    from matplotlib.figure import Figure

    cycles = [cycle for cycle in result["run"].recent(1_000) if cycle.stats]
    ends = [cycle.time for cycle in cycles]
    figure = Figure(figsize=(9, 6), layout="constrained")
    rates, replicas, bars = figure.subplots(3, 1)
    for name in ("views", "clicks"):
        sent = [cycle.stats.sources[name].emitted / cycle.stats.duration for cycle in cycles]
        rates.plot(ends, sent, label=name)
    rates.set_title("events per second", loc="left", fontsize=10)
    for name in result["run"].topology.by_name:
        active = [cycle.stats.operators[name].active for cycle in cycles]
        replicas.step(ends, active, where="pre", label=name)
    replicas.set_title("active replicas", loc="left", fontsize=10)
    for axes in (rates, replicas):
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, ncols=4)
    counts = Counter(row.campaign for row in result["rows"])
    bars.bar(CAMPAIGNS, [counts[name] for name in CAMPAIGNS], color="#1f5fa8")
    bars.set_title("clicks that were joined with their view", loc="left", fontsize=10)
    figure.savefig(target, dpi=110)
    return target


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as scratch:
        outcome = run(Path(scratch), session=elastream.session(pipeline))
        print(outcome["run"].status())
        for campaign, count in Counter(row.campaign for row in outcome["rows"]).most_common():
            print(f"{campaign:8}{count:>8,} clicks within ten seconds")
        print(f"picture: {draw(outcome, out / 'joined_branches.png')}")
