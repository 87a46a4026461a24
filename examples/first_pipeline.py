"""A first pipeline: elastream run examples/first_pipeline.py:pipeline --scale 0.1 --speed 20."""

import pyarrow as pa
import pyarrow.compute as pc

from elastream import Pipeline

pipeline = Pipeline("orders")
orders = pipeline.source("orders")


@pipeline.operator(after=orders, pool=4, grouping="load-aware")
def price(batch: pa.Table) -> pa.Table:
    return batch.append_column("total", pc.multiply(batch["pieces"], 19.9))


@pipeline.operator(after=price, pool=2, when=lambda batch: pc.greater(batch["total"], 150))
def alert(rows: list) -> list:
    return [{"id": row["id"], "text": f"a large order: {row['total']:.2f}"} for row in rows]


def make(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"id": numbers, "pieces": [1 + number % 10 for number in numbers]})


sources = {"orders": make}
