"""The SparkSession that replicas run in."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from elastream.engines.executors.spark import allocates_dynamically, cores_per_task
from elastream.engines.spark.driver.launch import launch
from elastream.engines.spark.worker.pool import Pool
from elastream.errors import InvalidInputError

MASTERS = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn")
"""What Spark takes as the URL of where it runs."""
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Events do not pass through Java: it has to start quickly, and leave the cores to replicas."""
PREPARED = "elastream.prepared"
"""The setting of a session that says that it knows the pool already."""
TASK_RETRIES = 8
"""How often Spark restarts a task that dies; after that, a new generation takes over. It applies to
all queries of the session, and one that cannot work should fail soon."""
SETTINGS = {
    "spark.task.maxFailures": str(TASK_RETRIES),
    "spark.python.daemon.module": "elastream.engines.spark.worker.daemon",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    # A driver that is killed while a query writes its first offset leaves half a file there.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile="
    f"{Path(__file__).with_name('log4j2.properties').as_uri()} {JAVA}",
}
"""Of sessions that are made here; what `spark-submit` sets differently stays."""
EXECUTORS_SECONDS = 60.0
"""How long the executors of a cluster may take to come."""
EXECUTORS_LOOK_SECONDS = 0.2
SETTLED_SECONDS = 5.0
"""If no more come for this long, those that are there must do."""
FIRST_EXECUTORS = (
    "spark.dynamicAllocation.initialExecutors",
    "spark.dynamicAllocation.minExecutors",
    "spark.executor.instances",
)
"""The settings by which dynamic allocation begins with some executors; without, it has none until
tasks wait."""


def submitted() -> bool:
    """Whether `spark-submit` started this program, so that it says where and how Spark runs."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def new_session(
    slots: int,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    needed: int | None = None,
    least: int | None = None,
) -> SparkSession:
    """A session with this many task slots.

    Args:
        slots: How many tasks should be able to run at once.
        master: Spark's URL of where; on this machine unless given, with as many slots as needed:
            replicas wait more than they compute. Elsewhere, every process must see the state
            under the same path or address. Under `spark-submit` it is where that says.
        config: More of Spark's settings. They count more than ours.
        needed: How many slots are enough where there already is a session; by default all of them.
        least: How many are enough on a cluster; by default as many as needed.
    """
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise InvalidInputError(
            "Spark needs Java 17 or newer, and found none: "
            "install it, for instance with 'apt-get install openjdk-17-jre-headless'"
        )
    if master is not None and not MASTERS.fullmatch(master):
        raise InvalidInputError(
            f"the master {master!r} is not a URL that Spark knows: "
            "write local[N], spark://HOST:PORT, k8s://HOST:PORT or yarn"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {"spark.app.name": "elastream"}
    if submitted():
        settings |= _unless_given(SETTINGS, _submitted_settings())
    else:
        settings |= {"spark.master": master or f"local[{slots},{TASK_RETRIES}]"}
        settings |= SETTINGS | {"spark.ui.enabled": "false"}
        settings |= _modules_of_the_program(settings["spark.master"])
    settings |= config or {}
    launch(settings)
    session = SparkSession.builder.config(map={**settings}).getOrCreate()
    check_slots(session, slots if needed is None else needed, least)
    return prepared(session)


def _submitted_settings() -> dict[str, str]:
    """What `spark-submit`, its options and its files have set."""
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _unless_given(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Our settings, but for those that somebody else has chosen.

    >>> _unless_given({"spark.task.maxFailures": "8", "a": "b"}, {"spark.task.maxFailures": "4"})
    {'a': 'b'}
    """
    return {name: value for name, value in ours.items() if name not in given}


def _modules_of_the_program(master: str) -> dict[str, str]:
    """Lets tasks on this machine import what lies next to the program, as it can itself."""
    if not (master.startswith("local") and sys.path and sys.path[0]):
        return {}
    return {"spark.executorEnv.PYTHONPATH": sys.path[0]}


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
    found = shutil.which(python)
    if found == sys.executable:
        return
    if found is None:
        raise InvalidInputError(
            f"Spark runs its tasks with {python!r}, and plans queries with it next to the driver, "
            f"where it is not: set PYSPARK_PYTHON={sys.executable}, or unpack the environment that "
            f"executors get (spark.archives) in {Path.cwd()}, too"
        )
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


def on_one_machine(session: SparkSession) -> bool:
    """Whether tasks run in the driver's process, so that no executor can come or go."""
    master = str(session.sparkContext.master)
    return master.startswith("local") and not master.startswith("local-cluster")


def task_slots(session: SparkSession) -> int:
    """How many task slots the session has now; on a cluster, executors come and go."""
    context = session.sparkContext
    return int(context.defaultParallelism) // cores_per_task(context)


def check_slots(session: SparkSession, needed: int, least: int | None = None) -> None:
    """An error if there are too few task slots.

    Every replica is a task that does not end: without a slot for each, some never run. On a
    cluster, that is no harm as long as the ones that must run do.

    Args:
        session: Where tasks run.
        needed: How many slots everything needs.
        least: How many are enough on a cluster; all unless given.
    """
    here = on_one_machine(session)
    enough = needed if here or least is None else least
    dynamic = not here and allocates_dynamically(session.sparkContext)
    # On a cluster, executors take some seconds to come.
    coming = not here and (not dynamic or _begins_with_executors(session))
    ends = time.monotonic() + (EXECUTORS_SECONDS if coming else 0.0)
    slots, since = task_slots(session), time.monotonic()
    while slots < needed and time.monotonic() < ends:
        if slots >= enough and time.monotonic() > since + SETTLED_SECONDS:
            break
        time.sleep(EXECUTORS_LOOK_SECONDS)
        before, slots = slots, task_slots(session)
        since = since if slots == before else time.monotonic()
    if slots < enough and dynamic:
        raise InvalidInputError(
            "spark.dynamicAllocation.enabled is true, so Spark starts executors for tasks that "
            f"wait, but the pools, and the queries that feed and read them, need {enough} task "
            "slots from the beginning: set it to false"
        )
    if slots < enough:
        raise InvalidInputError(
            f"the pools, and the queries that feed and read them, need {enough} task slots, and "
            f"the Spark session has {slots}: "
            f"use smaller pools, or a session with master('local[{needed}]') or more executors"
        )


def _begins_with_executors(session: SparkSession) -> bool:
    conf = session.sparkContext.getConf()
    return any(int(conf.get(name) or 0) for name in FIRST_EXECUTORS)
