"""Where Spark notes how far DataFrames were read: a folder, or a place in another file system."""

from __future__ import annotations

import re
from pathlib import Path

_OTHER_FILE_SYSTEM = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:")
FEEDS = "feeds"
"""What the checkpoints of DataFrames that feed sources are in."""


def folder_of(place: str) -> Path | None:
    """The folder, with its whole path, if it is one that this machine can see by itself.

    >>> folder_of("file:///mnt/orders"), folder_of("hdfs://namenode/orders")
    (PosixPath('/mnt/orders'), None)
    """
    if not place or _OTHER_FILE_SYSTEM.match(place):
        return None
    return Path(re.sub(r"^file:(//)?(?=/)", "", place)).absolute()


def for_spark(place: str | Path) -> str:
    """How to name it to Spark, to which a bare path may be one of the cluster's file system.

    >>> for_spark("/mnt/orders")
    'file:///mnt/orders'
    """
    folder = folder_of(str(place))
    return str(place) if folder is None else f"file://{folder}"
