"""When nobody reads what the batches of streaming queries have shuffled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

BATCH = re.compile(r"batch = (\d+)")
"""In the description that Spark gives to the jobs of a query."""


class Jobs(Protocol):
    """What the status store tells of jobs."""

    def running_jobs(self) -> list[dict[str, Any]]:
        """The jobs that are at work, whoever started them."""

    def jobs_started(self) -> int:
        """How many there have been; their numbers are below that."""

    def job(self, number: int) -> dict[str, Any] | None:
        """One job; None if it is not known."""

    def newest_job(self, group: str) -> int | None:
        """The number of the group's newest job."""


def between_batches(jobs: Jobs, queries: Iterable[Any]) -> bool:
    """Whether no job is at work, and every query has finished the batch of its newest job.

    That no job is at work is not enough: with adaptive execution, and in `foreachBatch`, a batch
    has several jobs, and the next one reads what the one before has shuffled. That a trigger is at
    work does no harm: a batch that is being planned has shuffled nothing yet. So there is a gap
    even between batches that follow one another at once.
    """
    started = jobs.jobs_started()
    if started and jobs.job(started - 1) is None:
        return False  # The store has not heard of the newest one yet.
    if jobs.running_jobs():
        return False
    return all(_finished(jobs, query) for query in queries)


def batch_of(job: Mapping[str, Any]) -> int | None:
    """The batch that a job is part of, if it says so.

    >>> batch_of({"description": "id = 1, batch = 7"}), batch_of({"description": None})
    (7, None)
    """
    found = BATCH.search(job["description"] or "")
    return int(found.group(1)) if found else None


def _finished(jobs: Jobs, query: Any) -> bool:
    if not query.status["isTriggerActive"]:
        return True
    number = jobs.newest_job(str(query.runId))
    if number is None:
        return True
    newest, progress = jobs.job(number), query.lastProgress
    batch = batch_of(newest) if newest else None
    if batch is None or progress is None:
        return False
    # A trigger that found nothing to do reports the number of the batch that is to come.
    ended = progress["batchId"] if "addBatch" in progress["durationMs"] else progress["batchId"] - 1
    return batch <= int(ended)
