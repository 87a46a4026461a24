"""The versions of the tables, and how a state of an older version is upgraded."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.births import Births

NEWEST = 5
"""Grows whenever the tables change.

1: a queue per replica. 2: lanes. 3: units have names, and a member's counts are one row. 4:
failures are of a generation. 5: large batches are in parcels, and lanes know their heads.
"""

_KEPT_FROM_1 = ("meta", "latencies", "feeds")
"""Tables of version 1 that are still the same."""


def bring_up_to_date(db: sqlite3.Connection, version: int, make: Callable[[], None]) -> None:
    """Turn the tables of an older version into those of the newest, in the caller's transaction.

    Args:
        db: The file.
        version: What it has.
        make: Makes the newest tables, none of which must be there.
    """
    if version in (2, 3, 4):
        if version < 3:
            _name_units(db)
        if version < 4:
            _make_failures_of_generations(db)
        _make_parcels_for_large_batches(db)
        _find_heads(db)
        return
    if version != 1:
        raise sqlite3.DatabaseError(
            f"its tables have version {version}, and this elastream knows versions 1 to {NEWEST}: "
            "use the elastream that made it, or name another folder"
        )
    old = [
        name
        for (name,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    ]
    for (trigger,) in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        db.execute(f"DROP TRIGGER {trigger}")
    for (index,) in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    ).fetchall():
        db.execute(f"DROP INDEX {index}")
    for table in old:
        db.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    make()
    for table in _KEPT_FROM_1:
        db.execute(f"INSERT INTO {table} SELECT * FROM old_{table}")
    db.execute(
        "INSERT INTO counts (operator, replica, processed, emitted, dropped, busy, cpu) "
        "SELECT operator, replica, processed, emitted, dropped, busy, cpu FROM old_counts"
    )
    _move_sent(db, "old_sent")
    # A queue becomes the lane of the same number; a starting driver lays lanes out again.
    db.create_function("births", 2, lambda events, born: Births.evenly(events, born).to_bytes())
    db.execute(
        "INSERT INTO batches (number, operator, lane, events, births, data) "
        "SELECT ticket, operator, replica, events, births(events, born), data FROM old_batches "
        "WHERE operator NOT LIKE '%:output'"
    )
    db.execute(
        "INSERT INTO output_batches SELECT ticket, operator, events, data FROM old_batches "
        "WHERE operator LIKE '%:output'"
    )
    db.execute(
        "INSERT INTO lanes (operator, lane, arrived) "
        "SELECT operator, lane, sum(events) FROM batches GROUP BY operator, lane "
        "UNION ALL SELECT operator, 0, sum(events) FROM output_batches GROUP BY operator"
    )
    _note_heads(db)
    db.execute(
        "INSERT INTO dead_letters SELECT number, operator, replica, events, error, data, time "
        "FROM old_dead_letters"
    )
    db.execute("INSERT INTO staged SELECT number, source, parcel, events, data FROM old_staged")
    db.execute("INSERT INTO outputs SELECT queue, consumed, offered FROM old_outputs")
    # Numbers that were given out once must not be given out again: readers remember them.
    db.execute(
        "INSERT INTO sqlite_sequence (name, seq) "
        "SELECT 'output_batches', seq FROM sqlite_sequence WHERE name = 'old_batches' "
        "AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'output_batches')"
    )
    db.execute(
        "UPDATE sqlite_sequence SET seq = (SELECT seq FROM sqlite_sequence WHERE name = "
        "'old_batches') WHERE name = 'output_batches'"
    )
    for table in old:
        db.execute(f"DROP TABLE old_{table}")


def _move_sent(db: sqlite3.Connection, table: str) -> None:
    """Write what a table has, one row per member and successor, into the members' counts."""
    db.execute(
        "UPDATE counts SET sent = (SELECT json_group_object(target, json_array(events, lost)) "
        f"FROM {table} AS old WHERE old.operator = counts.operator AND old.replica = "
        f"counts.replica) WHERE (operator, replica) IN (SELECT operator, replica FROM {table})"
    )


def _name_units(db: sqlite3.Connection) -> None:
    """From version 2 to 3."""
    db.execute("ALTER TABLE batches ADD COLUMN unit TEXT")
    db.execute("ALTER TABLE counts ADD COLUMN sent TEXT")
    db.execute("ALTER TABLE counts ADD COLUMN units INTEGER NOT NULL DEFAULT 0")
    db.execute("ALTER TABLE counts ADD COLUMN squares REAL NOT NULL DEFAULT 0")
    _move_sent(db, "sent")
    db.execute("DROP TABLE sent")


def _make_failures_of_generations(db: sqlite3.Connection) -> None:
    """From version 3 to 4. Failures are of a run, and are not kept."""
    db.execute("DROP TABLE failures")
    db.execute(
        "CREATE TABLE failures (generation INTEGER NOT NULL, operator TEXT NOT NULL, "
        "replica INTEGER NOT NULL, error TEXT NOT NULL, "
        "PRIMARY KEY (generation, operator, replica)) WITHOUT ROWID"
    )


def _make_parcels_for_large_batches(db: sqlite3.Connection) -> None:
    """From version 4 to 5."""
    db.execute("ALTER TABLE parcels RENAME TO old_parcels")
    db.execute(
        "CREATE TABLE parcels "
        "(number INTEGER PRIMARY KEY, births BLOB, data BLOB NOT NULL, lane_of BLOB)"
    )
    db.execute("INSERT INTO parcels SELECT number, births, data, lane_of FROM old_parcels")
    db.execute("DROP TABLE old_parcels")
    db.execute("CREATE INDEX who_needs ON batches (parcel) WHERE parcel IS NOT NULL")


def _find_heads(db: sqlite3.Connection) -> None:
    """From version 4 to 5."""
    db.execute("ALTER TABLE lanes ADD COLUMN head INTEGER")
    db.execute("ALTER TABLE batches ADD COLUMN follows INTEGER NOT NULL DEFAULT 1")
    db.execute("DROP INDEX next_batch")
    db.execute(
        "CREATE INDEX next_batch ON batches (operator, lane, taken_by, number) WHERE follows"
    )
    _note_heads(db)


def _note_heads(db: sqlite3.Connection) -> None:
    """Of every lane but those that all replicas of an operator share."""
    db.execute(
        "UPDATE lanes SET head = (SELECT min(number) FROM batches WHERE batches.operator = "
        "lanes.operator AND batches.lane = lanes.lane AND taken_by IS NULL AND follows) "
        f"WHERE lane <> {SHARED_LANE}"
    )
