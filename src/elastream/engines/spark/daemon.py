"""The parent of Spark's Python workers, with what replicas need imported before it forks them.

Each worker would import it for itself otherwise, which takes a third of a second of CPU for every
replica. Spark starts this module in place of its own daemon (`spark.python.daemon.module`).
"""

import sqlite3  # noqa: F401

import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.sql.conversion
import pyspark.sql.pandas.serializers
import pyspark.sql.worker.plan_data_source_read
import pyspark.worker  # noqa: F401
from pyspark import daemon

import elastream.engines.spark.frames.output
import elastream.engines.spark.frames.sink
import elastream.engines.spark.pool  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
