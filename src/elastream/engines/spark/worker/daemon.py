"""The parent of Spark's Python workers, with what replicas need imported before it forks them.

Each worker would import it for itself otherwise, which takes a third of a second of CPU for every
replica. Spark starts this module in place of its own daemon (`spark.python.daemon.module`).
"""

# ruff: noqa: F401 - imported for the processes that are forked later

import gc
import os
import sys
from contextlib import suppress
from zipimport import zipimporter

import numpy
import pandas
import pyarrow
import pyspark.sql.conversion
import pyspark.sql.pandas.serializers
import pyspark.sql.worker.plan_data_source_read
import pyspark.worker
from pyspark import daemon

import elastream.engines.spark.dataframes.output
import elastream.engines.spark.dataframes.sink
import elastream.engines.spark.worker.deployment
import elastream.engines.spark.worker.pool
from elastream.engines.spark.backends import import_default
from elastream.importing import only_importing


def forget_archives() -> None:
    """Forget how to look into archives; what needs to look again finds out again.

    PySpark itself comes as one, and every worker starts with `importlib.invalidate_caches`, which
    reads the list of its files anew for each package that was imported from it: a quarter of a
    second of CPU for every replica.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def share_what_is_imported() -> None:
    """Keep the garbage collector of every worker away from what all of them share.

    A full collection looks at each object, and so copies the memory that it has in common with the
    daemon: 50 ms of CPU and 25 MB. Replicas that work alike would all do so at the same moment.
    """
    gc.collect()
    gc.freeze()


def give_way() -> None:
    """Let workers that wake up not interrupt whoever is at work, where the system knows how.

    Dozens of them wake up hundreds of times a second. Whoever is interrupted finds its caches
    cold, and the control loop would decide late; a worker waits for a few milliseconds at most.
    """
    if hasattr(os, "SCHED_BATCH"):
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


if __name__ == "__main__":
    import_default()
    forget_archives()
    share_what_is_imported()
    give_way()
    with only_importing():
        daemon.manager()
