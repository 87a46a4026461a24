"""The embedded backend: one SQLite file in WAL mode, for the processes of one machine.

One file, because a commit must be all or nothing across lanes. Writers take turns; a turn is
short, as batches are small and nothing is forced to the disk before its checkpoint. What a crash of
the machine may lose is the newest commits, never half of one.
"""

from elastream.engines.spark.backends.sqlite.backend import SqliteBackend

__all__ = ["SqliteBackend"]
