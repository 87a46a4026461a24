"""Find unusual log lines with a model that learns while it runs; each replica has its own.

    python examples/log_anomalies/log_anomalies.py

It takes about a minute, prints what was found, and draws `log_anomalies.png` next to this file.
"""

from __future__ import annotations

import random
import re
import sys
from math import log10
from pathlib import Path
from typing import Any

import pyarrow as pa

import elastream

SERVICES = ("cart", "login", "search", "orders", "stock", "mail", "images", "api")
TYPICAL_MS = (20, 60, 150, 90, 35, 400, 12, 70)
LINE = re.compile(
    r"(?P<level>[A-Z]+) (?P<service>\w+): (?P<method>\w+) /\w+ -> (?P<status>\d+) "
    r"in (?P<ms>[\d.]+) ms, (?P<bytes>\d+) bytes"
)
PLANTED_EVERY = 211
"""One line in this many is planted: it is far too slow, or far too large."""
FEW = 3
"""At most this many events of the last window in its leaf make an event an outlier."""


def make_lines(first: int, count: int) -> pa.Table:
    """The lines with these numbers; the same numbers always give the same lines."""
    rows = []
    for number in range(first, first + count):
        chance = random.Random(number)
        place = chance.randrange(len(SERVICES))
        took = TYPICAL_MS[place] * chance.lognormvariate(0, 0.25)
        size = 2_000 * chance.lognormvariate(0, 0.3)
        planted = number % PLANTED_EVERY == 0
        if planted and chance.random() < 0.5:
            took *= 30
        elif planted:
            size *= 60
        status = chance.choices((200, 304, 404), (90, 7, 3))[0]
        line = f"INFO {SERVICES[place]}: GET /{SERVICES[place]} -> {status} in {took:.1f} ms, "
        rows.append({"id": number, "line": f"{line}{size:.0f} bytes", "planted": planted})
    return pa.Table.from_pylist(rows)


class HalfSpaceTrees:
    """Half-space trees after Tan, Ting and Liu (IJCAI 2011): how full is the place of an event?

    Each tree cuts a random feature at a random place at every node. The trees count the events of
    the current window; the counts of the window before say how usual a new event is.

    Args:
        features: How many numbers, all from 0 to 1, describe an event.
        trees: More of them give a steadier score.
        depth: Deeper trees look more closely.
        window: After this many events the counts become the reference, and counting restarts.
        seed: The same seed makes the same trees.
    """

    def __init__(
        self, features: int, trees: int = 60, depth: int = 9, window: int = 250, seed: int = 1
    ) -> None:
        chance = random.Random(seed)
        self._depth, self._window, self._seen = depth, window, 0
        self._trees = [self._grow(chance, features) for _ in range(trees)]
        self._latest = [[0] * 2**depth for _ in range(trees)]
        self._reference = [[0] * 2**depth for _ in range(trees)]

    @property
    def ready(self) -> bool:
        """Whether a first window is full."""
        return self._seen >= self._window

    def score(self, event: list[float]) -> float:
        """The share of trees in which the event falls into a nearly empty leaf, from 0 to 1."""
        alone = 0
        for tree, latest, reference in zip(self._trees, self._latest, self._reference, strict=True):
            leaf = self._leaf(tree, event)
            alone += reference[leaf] < FEW
            latest[leaf] += 1
        self._seen += 1
        if self._seen % self._window == 0:
            self._reference = self._latest
            self._latest = [[0] * len(counts) for counts in self._latest]
        return alone / len(self._trees)

    def _leaf(self, tree: list[tuple[int, float]], event: list[float]) -> int:
        node = 1
        for _ in range(self._depth):
            feature, cut = tree[node]
            node = 2 * node + (event[feature] >= cut)
        return node - 2**self._depth

    def _grow(self, chance: random.Random, features: int) -> list[tuple[int, float]]:
        """The feature and the threshold at every inner node, the root at place 1."""
        ranges = {1: [(0.0, 1.0)] * features}
        tree = [(0, 0.0)] * 2**self._depth
        for node in range(1, 2**self._depth):
            feature = chance.randrange(features)
            low, high = ranges[node][feature]
            cut = low + (high - low) * chance.uniform(0.2, 0.8)
            tree[node] = (feature, cut)
            for child, part in ((2 * node, (low, cut)), (2 * node + 1, (cut, high))):
                ranges[child] = [*ranges[node][:feature], part, *ranges[node][feature + 1 :]]
        return tree


class Detector:
    """The operator: one model for each service whose lines come to this replica."""

    def __init__(self, threshold: float = 0.75) -> None:
        self._threshold = threshold
        self._models: dict[str, HalfSpaceTrees] = {}

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Score a line, learn from it, and say whether it is unusual."""
        if row["service"] not in self._models:
            self._models[row["service"]] = HalfSpaceTrees(features=2)
        model = self._models[row["service"]]
        ready = model.ready
        score = model.score([log10(1 + row["ms"]) / 5, log10(1 + row["bytes"]) / 7])
        return {**row, "ready": ready, "unusual": ready and score >= self._threshold}


pipeline = elastream.Pipeline("log-anomalies")
lines = pipeline.source("lines")


@pipeline.operator(after=lines, pool=2)
def parse(row: dict[str, Any]) -> dict[str, Any]:
    """From a line to its fields."""
    found = LINE.fullmatch(row["line"])
    if found is None:
        raise ValueError(f"no log line: {row['line']!r}")
    return {
        "id": row["id"],
        "planted": row["planted"],
        "service": found["service"],
        "status": int(found["status"]),
        "ms": float(found["ms"]),
        "bytes": int(found["bytes"]),
    }


# A service's lines always go to the replica that owns its lane, in order.
pipeline.add(Detector, name="detect", after=parse, pool=4, grouping="key", key="service")


def run(folder: Path, seconds: float = 35.0, **settings: Any) -> dict[str, Any]:
    """Run the pipeline, and compare what it found with what was planted."""
    load = elastream.replay(make_lines, "spiky", speed=1_301 / seconds, scale=0.5)
    with elastream.run(
        pipeline,
        {"lines": load},
        state=folder / "state",
        policy="pa-sps",
        predictor="lr",
        td=2.0,
        outputs={"detect": "id long, planted boolean, ready boolean, unusual boolean"},
        **settings,
    ) as going:
        detected = going["detect"]
        scored = detected.writeStream.format("memory").queryName("scored").start()
        going.await_termination()
        scored.processAllAvailable()
        scored.stop()
    rows = detected.sparkSession.table("scored").collect()
    planted = [row for row in rows if row.planted]
    return {
        "run": going,
        "lines": len(rows),
        "planted": len(planted),
        "found": sum(row.unusual for row in planted),
        "missed while a model was new": sum(not row.ready for row in planted),
        "false alarms": sum(row.unusual and not row.planted for row in rows),
        "lines scored by a new model": sum(not row.ready for row in rows),
    }


def draw(going: elastream.PipelineRun, target: Path) -> Path:
    """Input, and the replicas that the policy gave each operator."""
    from matplotlib.figure import Figure

    cycles = [cycle for cycle in going.recent(1_000) if cycle.stats]
    ends = [cycle.time for cycle in cycles]
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    rates, replicas = figure.subplots(2, 1, sharex=True)
    rates.plot(ends, [c.stats.input / c.stats.duration for c in cycles], color="0.5")
    rates.set_title("log lines per second", loc="left", fontsize=10)
    for name in going.topology.by_name:
        active = [cycle.stats.operators[name].active for cycle in cycles]
        replicas.step(ends, active, where="pre", label=name)
    replicas.set_title("active replicas", loc="left", fontsize=10)
    replicas.set_xlabel("seconds")
    replicas.legend(frameon=False, ncols=2)
    for axes in (rates, replicas):
        axes.set_ylim(bottom=0)
    figure.savefig(target, dpi=110)
    return target


if __name__ == "__main__":
    import tempfile

    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as scratch:
        result = run(Path(scratch))
    finished = result.pop("run")
    print(finished.status())
    for what, count in result.items():
        print(f"{what:32}{count:>8,}")
    print(f"picture: {draw(finished, out / 'log_anomalies.png')}")
