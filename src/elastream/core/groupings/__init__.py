"""How the events of an operator are distributed among its active replicas.

| name | who gets the next event | from |
| --- | --- | --- |
| `next-free` | the next in turn that is free | this project |
| `shuffle` | the next in turn | Storm |
| `key` | always the same for the same key | Storm |
| `load-aware` | each replica its share, by its speed and by what waits for it | after PA-SPS 3.1 |
| `algorithm-1` | the least utilised, for a single producer | PA-SPS algorithm 1, as printed |
| `osg` | the one with the least estimated work | after DABS-Storm section 5 |
| `osg-published` | the same as printed, for a single producer | DABS-Storm section 5 |
| `pull` | whichever is free first | this project |
"""

from elastream.catalog import Catalog
from elastream.core.groupings.base import SHARED_QUEUE, Batch, Grouping, Routing

GROUPINGS: Catalog[Grouping[object]] = Catalog(
    "grouping",
    {
        "next-free": "elastream.core.groupings.next_free:NextFree",
        "shuffle": "elastream.core.groupings.shuffle:Shuffle",
        "key": "elastream.core.groupings.key:Key",
        "load-aware": "elastream.core.groupings.load_aware:LoadAware",
        "algorithm-1": "elastream.core.groupings.algorithm_1:Algorithm1",
        "osg": "elastream.core.groupings.osg:Osg",
        "osg-published": "elastream.core.groupings.osg_published:OsgPublished",
        "pull": "elastream.core.groupings.pull:Pull",
    },
)

__all__ = ["GROUPINGS", "SHARED_QUEUE", "Batch", "Grouping", "Routing"]
