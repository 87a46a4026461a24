"""The newest plan, as everybody reads it."""

from __future__ import annotations

import json
import sqlite3

from elastream.core.groupings.base import Utilization
from elastream.engines.spark.backends.base import ActivePlan


def newest(db: sqlite3.Connection, than: ActivePlan) -> ActivePlan:
    """The one with the highest version, if that is higher than the version of another."""
    row = db.execute(
        "SELECT version, content FROM plans WHERE version > ? ORDER BY version DESC LIMIT 1",
        (than.version,),
    ).fetchone()
    if row is None:
        return than
    content = json.loads(row[1])
    return ActivePlan(
        {name: tuple(replicas) for name, replicas in content["active"].items()},
        {
            name: Utilization(tuple(busy), per_event)
            for name, (busy, per_event) in content["utilization"].items()
        },
        row[0],
    )


def replace(db: sqlite3.Connection, plan: ActivePlan) -> None:
    """Write the plan and forget the older ones, in the caller's transaction."""
    busy = {name: (of.of_replicas, of.per_event) for name, of in plan.utilization.items()}
    content = json.dumps({"active": dict(plan.active), "utilization": busy})
    db.execute("INSERT INTO plans (content) VALUES (?)", (content,))
    db.execute("DELETE FROM plans WHERE version < (SELECT max(version) FROM plans)")
