"""How the events of an operator are shared among its active replicas.

| name | who gets the next event | from |
| --- | --- | --- |
| `shuffle` | the next in turn | Storm |
| `key` | always the same for the same key | Storm |
| `load-aware` | the least utilised | PA-SPS algorithm 1 |
| `osg` | the one with the least estimated work | DABS-Storm section 5 |
| `pull` | whichever is free first | this project |
"""

from elastream.catalog import Catalog
from elastream.core.groupings.base import SHARED_QUEUE, Batch, Grouping, Routing

GROUPINGS: Catalog[Grouping[object]] = Catalog(
    "grouping",
    {
        "shuffle": "elastream.core.groupings.shuffle:Shuffle",
        "key": "elastream.core.groupings.key:Key",
        "load-aware": "elastream.core.groupings.load_aware:LoadAware",
        "osg": "elastream.core.groupings.osg:Osg",
        "pull": "elastream.core.groupings.pull:Pull",
    },
)

__all__ = ["GROUPINGS", "SHARED_QUEUE", "Batch", "Grouping", "Routing"]
