"""Input for pipelines: recorded or synthetic input rates, and applications.

>>> len(TRACES["spiky"](seed=1).values)
1301
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastream.catalog import Catalog
from elastream.workloads.traces import Trace

if TYPE_CHECKING:
    from elastream.workloads.applications import Application
    from elastream.workloads.live.applications import LiveApplication

__all__ = ["APPLICATIONS", "LIVE_APPLICATIONS", "TRACES", "Trace"]

_RANDOM = "spiky raw diurnal dns logs progressive erratic stable periodic fluctuating"
_PLAIN = "step square ramp"

TRACES: Catalog[Trace] = Catalog(
    "trace",
    {
        name: f"elastream.workloads.synthetic:{name}"
        for names in (_RANDOM, _PLAIN)
        for name in names.split()
    },
)

APPLICATIONS: Catalog[Application] = Catalog(
    "application",
    {
        "twitter": "elastream.workloads.applications:twitter",
        "twitter-unequal": "elastream.workloads.applications:twitter_unequal",
        "twitter-complex": "elastream.workloads.applications:twitter_complex",
        "diamond": "elastream.workloads.applications:diamond",
        "star": "elastream.workloads.applications:star",
        "dns": "elastream.workloads.applications:dns",
        "logs": "elastream.workloads.applications:logs",
        "simple-insensitive": "elastream.workloads.sensitive:simple_insensitive",
        "simple-sensitive": "elastream.workloads.sensitive:simple_sensitive",
        "complex-sensitive": "elastream.workloads.sensitive:complex_sensitive",
    },
)

LIVE_APPLICATIONS: Catalog[LiveApplication] = Catalog(
    "application that works on real events",
    {
        "twitter": "elastream.workloads.live.applications:twitter",
        "twitter-unequal": "elastream.workloads.live.applications:twitter_unequal",
        "twitter-complex": "elastream.workloads.live.applications:twitter_complex",
        "diamond": "elastream.workloads.live.applications:diamond",
        "star": "elastream.workloads.live.applications:star",
        "dns": "elastream.workloads.live.applications:dns",
        "logs": "elastream.workloads.live.applications:logs",
    },
)
"""Each takes where to store (`store`), and how much to wait per event besides (`service_ms`)."""
