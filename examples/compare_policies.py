"""Three policies on one pipeline and one input, in the simulator: a few lines, a second."""

import elastream

pipeline = elastream.Pipeline("tweets")
tweets = pipeline.source("tweets")
pipeline.add(len, name="sentiment", after=tweets, pool=8, execution_time=0.0013)
pipeline.add(len, name="alert", after="sentiment", pool=4, execution_time=0.002, share=0.1)

for name in ("presps", "pa-sps", "autoscale+"):
    measured = elastream.simulate(pipeline, "spiky", policy=name, predictor="lr").metrics
    latency = measured.latency_ms.mean
    print(f"{name:10} saves {measured.saved_resources:.0%}, mean latency {latency:,.0f} ms")
