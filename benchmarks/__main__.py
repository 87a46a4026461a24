"""`make bench`: the benchmarks, one after the other, then one page with every figure.

The page is kept as JSON in `benchmarks/results`, with the commit and the machine, and compared with
what was kept before. It fails when a target is missed or a figure of ours has taken a step back; a
benchmark that breaks is a target that is missed, and the others go on.

Three are left out: `make bench-peers`, `python -m benchmarks.attached`, which needs 65 quiet
minutes, and `python -m benchmarks.acceptance`, which takes hours.
"""

import logging

from rich.console import Console
from rich.table import Table

from benchmarks import (
    application_functions,
    cluster,
    control_loop,
    control_service,
    dashboard,
    fast_clock,
    forecasts,
    levels,
    planning,
    predictor_service,
    predictors,
    recurrent_decision,
    routing,
    scale,
    simulator,
)
from benchmarks.command import by_hand
from benchmarks.kafka import facts, hops
from benchmarks.measure import Figure, Section, report, reported, show
from benchmarks.record import Step, commit, keep, last_kept, machine, steps
from benchmarks.spark import (
    agreement,
    chains,
    comparison,
    elasticity,
    groupings,
    growth,
    lanes,
    objective,
    start,
    unit,
)
from elastream.errors import described

log = logging.getLogger(__name__)

ALL = (
    planning,
    scale,
    routing,
    control_loop,
    fast_clock,
    control_service,
    predictors,
    forecasts,
    recurrent_decision,
    predictor_service,
    dashboard,
    simulator,
    application_functions,
    start,
    unit,
    comparison,
    chains,
    elasticity,
    lanes,
    groupings,
    growth,
    agreement,
    objective,
    facts,
    hops,
    cluster,
    levels,
)

BY_NAME = {benchmark.__name__.rpartition(".")[2]: benchmark for benchmark in ALL}


def page(sections: list[Section], found: list[Step]) -> None:
    """Print everything again, in one place, and what has changed."""
    on = machine()
    console = Console()
    console.rule(f"commit {commit()}, {on['cores']} cores, {on['processor']}")
    for section in sections:
        show(section)
    table = Table(title="beside what was kept before", title_justify="left", min_width=72)
    for heading in ("", "before", "now", "better by"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for step in found:
        style = "bold red" if step.back else ""
        table.add_row(step.what, step.before, step.after, f"{step.change:+.0%}", style=style)
    console.print(table if found else "nothing was kept before on such a machine")


def main(*names: str) -> bool:
    """Run these benchmarks, or all; returns whether targets were met, and nothing got worse."""
    before = last_kept()
    for name in names or BY_NAME:
        try:
            BY_NAME[name].main()
        except Exception as error:
            log.exception("the benchmark %s broke", name)
            report(name, [Figure("not measured", described(error), met=False)])
    found = steps(reported, before)
    page(reported, found)
    print(f"kept in {keep(reported)}: commit it to compare later runs with it")
    backwards = any(step.back for step in found)
    return not backwards and all(section.met for section in reported)


if __name__ == "__main__":
    by_hand(main, BY_NAME)
