"""The parent of Spark's Python workers, with what replicas need imported before it forks them.

Each worker would import it for itself otherwise, which takes a third of a second of CPU for every
replica. Spark starts this module in place of its own daemon (`spark.python.daemon.module`).
"""

import sqlite3  # noqa: F401
import sys
from zipimport import zipimporter

import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.sql.conversion
import pyspark.sql.pandas.serializers
import pyspark.sql.worker.plan_data_source_read
import pyspark.worker  # noqa: F401
from pyspark import daemon


def forget_archives() -> None:
    """Forget how to look into archives; what needs to look again finds out again.

    PySpark itself comes as one, and every worker starts with `importlib.invalidate_caches`, which
    reads the list of its files anew for each package that was imported from it: a quarter of a
    second of CPU for every replica.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


if __name__ == "__main__":
    forget_archives()
    daemon.manager()
