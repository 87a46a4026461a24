"""A first pipeline: three operators, scaled by PA-SPS in the simulator."""

from elastream import Pipeline
from elastream.control import ControlLoop
from elastream.engines.simulation import SimulationEngine
from elastream.policies import POLICIES
from elastream.predictors import PREDICTORS
from elastream.workloads import TRACES

pipeline = Pipeline("tweets")
tweets = pipeline.source("tweets")


@pipeline.operator(after=tweets, pool=8, grouping="load-aware", execution_time=0.0013)
def sentiment(batch):
    return batch.append_column("score", [[len(text) % 3 - 1 for text in batch["text"]]])


@pipeline.operator(after=sentiment, pool=4, execution_time=0.0005)
def store(batch):
    return batch


@pipeline.operator(after=sentiment, pool=2, execution_time=0.002, share=0.05)
def alert(batch):
    return batch


engine = SimulationEngine(pipeline.topology(), TRACES["spiky"]())
loop = ControlLoop(engine, POLICIES["pa-sps"](), PREDICTORS["lr"](), td=30)
for cycle in loop.run(43):
    for change in cycle.changes:
        print(f"{cycle.time:5.0f} s  {change}")
