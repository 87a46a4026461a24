"""Three policies on one pipeline and one input, in the simulator: a few lines, a second."""

from elastream import Pipeline
from elastream.control import ControlLoop
from elastream.core.evaluation import evaluate
from elastream.engines.simulation import SimulationEngine
from elastream.policies import POLICIES
from elastream.predictors import PREDICTORS
from elastream.workloads import TRACES

pipeline = Pipeline("tweets")
tweets = pipeline.source("tweets")
pipeline.add(len, name="sentiment", after=tweets, pool=8, execution_time=0.0013)
pipeline.add(len, name="alert", after="sentiment", pool=4, execution_time=0.002, share=0.1)

for name in ("presps", "pa-sps", "autoscale+"):
    engine = SimulationEngine(pipeline.topology(), TRACES["spiky"]())
    loop = ControlLoop(engine, POLICIES[name](), PREDICTORS["lr"](), td=30)
    stats = [cycle.stats for cycle in loop.run(43) if cycle.stats]
    measured = evaluate(engine.topology, stats)
    latency = measured.latency_ms.mean
    print(f"{name:10} saves {measured.saved_resources:.0%}, mean latency {latency:,.0f} ms")
