from types import SimpleNamespace

import pytest

from elastream.engines.attached.gaps import between_batches


class Jobs:
    """Jobs of queries, the newest last: each its query and its batch."""

    def __init__(self, *jobs, running=False, known=None):
        self.jobs = jobs
        self.running = running
        self.known = len(jobs) if known is None else known

    def running_jobs(self):
        return [self.job(len(self.jobs) - 1)] if self.running else []

    def jobs_started(self):
        return len(self.jobs)

    def job(self, number):
        run, batch = self.jobs[number]
        text = f"runId = {run}\nbatch = {batch}" if batch is not None else "my own words"
        return {"description": text} if number < self.known else None

    def newest_job(self, group):
        return max((at for at, (run, _) in enumerate(self.jobs) if run == group), default=None)


def query(run, ended=None, active=True, executed=True):
    durations = {"triggerExecution": 9, **({"addBatch": 5} if executed else {})}
    progress = None if ended is None else {"batchId": ended, "durationMs": durations}
    return SimpleNamespace(runId=run, status={"isTriggerActive": active}, lastProgress=progress)


@pytest.mark.parametrize(
    ("jobs", "queries", "between"),
    [
        pytest.param(Jobs(), [query("a")], True, id="nothing has run yet"),
        pytest.param(Jobs(("a", 4)), [query("a", 4, active=False)], True, id="waits for a trigger"),
        pytest.param(Jobs(("a", 4), running=True), [query("a", 3)], False, id="a job is at work"),
        pytest.param(Jobs(("a", 4)), [query("a", 3)], False, id="between two jobs of a batch"),
        pytest.param(Jobs(("a", 4)), [query("a", 4)], True, id="the next batch is being planned"),
        pytest.param(
            Jobs(("a", 4)), [query("a", 4, executed=False)], False, id="after an empty trigger"
        ),
        pytest.param(Jobs(("a", 0)), [query("a")], False, id="in the first batch"),
        pytest.param(Jobs(("a", None)), [query("a", 3)], False, id="the batch is unknown"),
        pytest.param(
            Jobs(("a", 4), ("b", 9)), [query("a", 3), query("b", 9)], False, id="another is at work"
        ),
        pytest.param(
            Jobs(("a", 4), ("b", 9)), [query("a", 4), query("b", 9)], True, id="all have ended"
        ),
        pytest.param(
            Jobs(("a", 4), ("a", 5), known=1), [query("a", 4)], False, id="the store lags behind"
        ),
    ],
)
def test_what_was_shuffled_is_read_until_its_batch_has_ended(jobs, queries, between):
    assert between_batches(jobs, queries) is between
