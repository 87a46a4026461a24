"""The SparkSession that replicas run in."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from elastream.engines.spark.worker.pool import Pool
from elastream.errors import InvalidInputError

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Events do not pass through Java: it has to start quickly, and leave the cores to replicas."""
PREPARED = "elastream.prepared"
"""The setting of a session that says that it knows the pool already."""
TASK_RETRIES = 8
"""A replica that dies is started again so often; after that, a new generation is. It holds for all
queries of the session, and one that cannot work should say so soon."""
EXECUTORS_SECONDS = 60.0
"""How long the executors of a cluster may take to come."""
EXECUTORS_LOOK_SECONDS = 0.2


def new_session(
    slots: int, master: str | None = None, config: Mapping[str, str] | None = None
) -> SparkSession:
    """A session with this many task slots.

    Args:
        slots: How many tasks must be able to run at once.
        master: Spark's URL of where; on this machine unless given, with as many slots as needed:
            replicas wait more than they compute. Elsewhere, every process must see the state
            under the same path or address. Under `spark-submit` it is where that says.
        config: More of Spark's settings. They count more than ours.
    """
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise InvalidInputError(
            "Spark needs Java 17 or newer, and found none: "
            "install it, for instance with 'apt-get install openjdk-17-jre-headless'"
        )
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    builder = SparkSession.builder.appName("elastream")
    if not submitted:
        # Settings of `spark-submit` stay as they are.
        builder = builder.master(master or f"local[{slots},{TASK_RETRIES}]").config(
            "spark.ui.enabled", "false"
        )
    session = (
        builder.config("spark.task.maxFailures", TASK_RETRIES)
        .config("spark.python.daemon.module", "elastream.engines.spark.worker.daemon")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        # A driver that is killed while a query writes its first offset leaves half a file there.
        .config("spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart", "false")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging} {JAVA}")
        .config(map=dict(config or {}))
        .getOrCreate()
    )
    check_slots(session, slots)
    return prepared(session)


def prepared(session: SparkSession) -> SparkSession:
    """Let the session know the pool, and have Spark start the processes that it needs for it.

    It starts them one after the other, and each imports a lot. While the first ones work, the
    others can already start.
    """
    if session.conf.get(PREPARED, "") == "yes":
        return session
    check_python(session)
    session.conf.set(PREPARED, "yes")
    workers = session.sparkContext.parallelize([0], 1)
    _begin(lambda: workers.foreach(lambda _: None))
    session.dataSource.register(Pool)
    _begin(session.read.format(Pool.name()).load().collect)
    return session


def check_python(session: SparkSession) -> None:
    """An error unless the Python that Spark starts for its tasks can import elastream."""
    python = session.sparkContext.pythonExec
    if shutil.which(python) == sys.executable:
        return
    remedy = (
        f"set PYSPARK_PYTHON={sys.executable} before you create the session, "
        "or install elastream for that Python"
    )
    try:
        # What travels must not need elastream itself.
        (there,) = (
            session.sparkContext.parallelize(["elastream"], 1).map(find_spec).map(bool).collect()
        )
    except Exception as error:
        cause = str(error).strip().splitlines()[0]
        raise InvalidInputError(
            f"Spark runs its tasks with {python!r}, which does not work ({cause}): {remedy}"
        ) from None
    if not there:
        raise InvalidInputError(
            f"Spark runs its tasks with {python!r}, which cannot import elastream: {remedy}"
        )


def _begin(work: Callable[[], object]) -> None:
    def attempt() -> None:
        with suppress(Exception):  # If it fails, so will the pool, and say why.
            work()

    threading.Thread(target=attempt, name="warm-up", daemon=True).start()


def check_slots(session: SparkSession, needed: int) -> int:
    """How many task slots the session has, if there are enough.

    Every replica is a task that does not end: without a slot for each, some would never run.
    """
    context, master = session.sparkContext, str(session.sparkContext.master)
    # On a cluster, executors take some seconds to come.
    here = master.startswith("local") and not master.startswith("local-cluster")
    ends = time.monotonic() + (0.0 if here else EXECUTORS_SECONDS)
    while (slots := context.defaultParallelism) < needed and time.monotonic() < ends:
        time.sleep(EXECUTORS_LOOK_SECONDS)
    if slots < needed:
        raise InvalidInputError(
            f"the pools, and the queries that feed and read them, need {needed} task slots, and "
            f"the Spark session has {slots}: "
            f"use smaller pools, or a session with master('local[{needed}]') or more executors"
        )
    return slots
