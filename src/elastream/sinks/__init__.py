"""Sinks that need no code: add one with `pipeline.add(sink, after=...)`.

| sink | what it promises |
| --- | --- |
| `Print` | at least once: if a replica dies, its successor prints the last batch again |
| `Table` | once: it records which units of work it has written |
| `run[operator]` | exactly once, with a Spark sink that is, such as files |

>>> from elastream import Pipeline
>>> pipeline = Pipeline("shop")
>>> _ = pipeline.add(Print(), after=pipeline.source("orders"))
>>> pipeline.topology().terminals
('print',)
"""

from elastream.sinks.printing import Print
from elastream.sinks.table import Table

__all__ = ["Print", "Table"]
