"""What waits at sources of files.

Spark's progress does not tell: the offset of such a source counts batches, and it reports no latest
one. But the source itself knows. It lists the folder, takes as many files as a batch may have, and
keeps the rest of the list for the batches that follow. This reads how long that rest is, which
lists nothing and costs the query nothing. Files that have come since Spark last listed the folder
are not in it, and with `latestFirst` Spark keeps none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

SOURCE = "FileStreamSource"
REST = "unreadFiles"
FILES, BYTES = "ReadMaxFiles", "ReadMaxBytes"


class LimitedFiles:
    """A source of files whose batches are limited, by the number of files or by their size.

    Args:
        source: Spark's own.
        read: Reads an object of the JVM as JSON.
    """

    def __init__(self, source: Any, read: Callable[[Any], Any]) -> None:
        limit = source.getDefaultReadLimit()
        self._by_size = limit.getClass().getSimpleName() == BYTES
        self._most = int(limit.maxBytes() if self._by_size else limit.maxFiles())
        self._source, self._read = source, read
        # Spark has no accessor for it.
        self._rest = source.getClass().getDeclaredField(REST)
        self._rest.setAccessible(True)
        self._count, self._size = 0, 0

    def batches_waiting(self) -> float:
        """How many full batches the files make that Spark has listed and not taken."""
        files = self._rest.get(self._source)
        count = int(files.size()) if files is not None else 0
        if not self._by_size:
            return count / self._most
        if count != self._count:  # Sizes are many, and change with every batch only.
            self._count = count
            self._size = sum(file["size"] for file in self._read(files)) if count else 0
        return self._size / self._most


def limited_files(sources: Iterable[Any], read: Callable[[Any], Any]) -> list[LimitedFiles]:
    """Those of a query's sources that are limited ones of files."""
    return [LimitedFiles(source, read) for source in sources if _is_limited(source)]


def _is_limited(source: Any) -> bool:
    if source.getClass().getSimpleName() != SOURCE:
        return False
    return source.getDefaultReadLimit().getClass().getSimpleName() in (FILES, BYTES)
