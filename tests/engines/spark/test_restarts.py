"""An engine that restarts for every change: what waits is lost and counted, and then it goes on."""

import numpy as np
import pyarrow as pa
import pytest

from elastream.core.decision import Plan
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.driver.restarts import RestartingEngine
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.errors import BackendUnavailableError, InvalidInputError
from support.waiting import eventually


def test_every_change_drops_what_waits_and_what_comes_meanwhile(
    spark_session, tmp_path, monkeypatch
):
    # Workers cannot import a test: what they run has to be made in here.
    def same(table):
        return table

    pipeline = Pipeline("restarting")
    pipeline.add(same, name="work", after=pipeline.source("in"), pool=2, execution_time=0.001)
    source = TraceSource(
        lambda first, count: pa.table({"id": range(first, first + count)}),
        1.0,
        np.full(3600, 200.0),
    )
    engine = RestartingEngine(
        pipeline.topology(), {"in": source}, tmp_path, spark_session, downtime=2.0
    )
    try:
        with engine.backend.connect() as connection:

            def counted(what):
                counts = connection.ledger.totals().counts
                return sum(getattr(of, what) for (name, _), of in counts.items() if name == "work")

            eventually(lambda: counted("processed") > 0)
            engine.apply(Plan({"work": 1}))
            assert not connection.board.plan().halted, "nothing changes"
            engine.apply(Plan({"work": 2}))
            assert connection.board.plan().halted
            eventually(lambda: not connection.board.plan().halted)
            lost, before = counted("dropped"), counted("processed")
            assert lost > 0
            eventually(lambda: counted("processed") > before + 100)
            assert counted("dropped") == lost
            assert len(connection.board.plan().active["work"]) == 2

            # A plan that cannot be meant changes nothing.
            with pytest.raises(InvalidInputError, match="its pool allows 1 to 2"):
                engine.apply(Plan({"work": 3}))
            with pytest.raises(InvalidInputError, match="has no operator 'nobody' to scale"):
                engine.apply(Plan({"nobody": 1}))
            assert not connection.board.plan().halted

            # Whatever goes wrong with a restart, replicas work again in the end.
            engine.apply(Plan({"work": 1}))
            attempts = []

            def clear(operator, really=engine.backend.clear):
                attempts.append(operator)
                if len(attempts) == 1:
                    raise BackendUnavailableError("the disk is full")
                really(operator)

            with monkeypatch.context() as patched:
                patched.setattr(type(engine.backend), "clear", lambda _, name: clear(name))
                eventually(lambda: not connection.board.plan().halted)
                assert len(attempts) > 1
            before = counted("processed")
            eventually(lambda: counted("processed") > before)
    finally:
        engine.close()
