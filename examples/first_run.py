"""The first program of the README: a stream goes through a pipeline into a table of files."""

import elastream

pipeline = elastream.Pipeline("orders")
orders = pipeline.source("orders")


@pipeline.operator(after=orders, pool=4)
def price(row: dict) -> dict:
    return {"id": row["value"], "total": 19.9 * (1 + row["value"] % 10)}


spark = elastream.session(pipeline)
stream = spark.readStream.format("rate").option("rowsPerSecond", 200).load().coalesce(1)
prices = {"price": "id long, total double"}
run = elastream.run(pipeline, {"orders": stream}, outputs=prices, state="state")
files = run["price"].writeStream.format("parquet").option("checkpointLocation", "checkpoint")
stored = files.start("prices")
run.await_termination()  # Ctrl-C drains and stops
stored.stop()
print(run.status())
