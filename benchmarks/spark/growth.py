"""What a longer line costs: 1 to 16 operators, in a table and in `out/benchmarks/growth.png`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from benchmarks.spark.pipelines import line, pass_on, wait
from benchmarks.spark.steady import Steady, steady
from elastream.engines.spark.driver.session import new_session
from elastream.figures import new_figure, save

LENGTHS = (1, 2, 4, 8, 16)
RATE, FLOOD = 500.0, 1_000_000.0
PICTURE = Path("out/benchmarks/growth.png")


def main() -> bool:
    """Print the table and draw the picture."""
    session = new_session(2 * (2 * max(LENGTHS) + 1) + 2)
    calm = {n: steady(line(n, 1, wait), RATE, session, seconds=8.0) for n in LENGTHS}
    flood = {n: steady(line(n, 1, pass_on), FLOOD, session, seconds=8.0) for n in LENGTHS}
    session.stop()
    draw(calm, flood)
    rows = [
        Figure(
            f"{n} operators",
            f"{1e3 * calm[n].mean:,.0f} ms, {calm[n].cores:.2f} cores, "
            f"{flood[n].throughput:,.0f} events/s",
        )
        for n in LENGTHS
    ]
    title = (
        f"Spark: operators in a line. Mean latency and cores at {RATE:,.0f} events/s of 1 ms, "
        f"one replica each; most events/s when they pass events on. Drawn in {PICTURE}"
    )
    return report(title, rows)


def draw(calm: dict[int, Steady], flood: dict[int, Steady]) -> None:
    """One panel for each quantity."""
    panels = {
        "latency (ms)": [1e3 * calm[n].mean for n in LENGTHS],
        "cores": [calm[n].cores for n in LENGTHS],
        "events/s": [flood[n].throughput for n in LENGTHS],
    }
    figure = new_figure(11, 3.2)
    axes = figure.subplots(1, len(panels))
    for axis, (name, values) in zip(axes, panels.items(), strict=True):
        axis.plot(LENGTHS, values, marker="o")
        axis.set_xlabel("operators in a line")
        axis.set_ylabel(name)
        axis.set_ylim(bottom=0)
    save(figure, PICTURE)


if __name__ == "__main__":
    by_hand(main)
