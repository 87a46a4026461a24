"""`make bench`: the benchmarks, one after the other; fails when a target is missed.

One is left out, as it takes two hours: `python -m benchmarks.attached`.
"""

from benchmarks import (
    application_functions,
    control_loop,
    control_service,
    dashboard,
    objective,
    planning,
    predictor_service,
    predictors,
    recurrent_decision,
    routing,
    simulator,
)
from benchmarks.kafka import facts, hops
from benchmarks.spark import agreement, comparison, elasticity, growth, lanes, start

ALL = (
    planning,
    routing,
    control_loop,
    objective,
    control_service,
    predictors,
    recurrent_decision,
    predictor_service,
    dashboard,
    simulator,
    application_functions,
    start,
    comparison,
    elasticity,
    lanes,
    growth,
    agreement,
    facts,
    hops,
)

if __name__ == "__main__":
    results = [benchmark.main() for benchmark in ALL]
    raise SystemExit(not all(results))
