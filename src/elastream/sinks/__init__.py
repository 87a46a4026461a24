"""Ends of a pipeline that need no code: add one with `pipeline.add(sink, after=...)`.

| sink | what it promises |
| --- | --- |
| `Print` | at least once: a replica that dies is followed by one that prints its last batch again |
| `Table` | once: it notes the units of work that it has written |
| `run[operator]` | exactly once, with a sink of Spark that is, such as files |

>>> from elastream import Pipeline
>>> pipeline = Pipeline("shop")
>>> _ = pipeline.add(Print(), after=pipeline.source("orders"))
>>> pipeline.topology().terminals
('print',)
"""

from elastream.sinks.printing import Print
from elastream.sinks.table import Table

__all__ = ["Print", "Table"]
