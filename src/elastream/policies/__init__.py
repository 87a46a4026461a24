"""Policies: how many replicas every operator gets next.

| name | idea |
| --- | --- |
| `static` | a fixed number |
| `pa-sps` | a forecast of the input, its way down the DAG, and all queues upstream |
| `presps` | the last input again, its way down the DAG, and each operator's own queue |
| `autoscale+` | a regression per operator against its capacity |
| `incremental` | one more or one less, on thresholds |
| `rlearning` | a learned map from input rate to replicas |
| `srea`, `spea`, `cba` | the current load; also the next; the cheapest schedule over a horizon |
| `reactive` | one more or one less, by how much of its interval a batch takes |
| `slots` | by used task slots and waiting tasks |
| `deadline` | batches that end in time, looking ahead over the lead time |
| `slo` | ours: the fewest replicas that keep a latency objective, on a fast clock |
| `oracle` | what could be reached by knowing the future |
"""

from __future__ import annotations

from elastream.catalog import Catalog
from elastream.policies.base import Context, Policy

__all__ = ["POLICIES", "Context", "Policy"]

POLICIES: Catalog[Policy] = Catalog(
    "policy",
    {
        "static": "elastream.policies.static:Static",
        "pa-sps": "elastream.policies.pa_sps:PaSps",
        "presps": "elastream.policies.pa_sps:Presps",
        "autoscale+": "elastream.policies.autoscale_plus:AutoscalePlus",
        "incremental": "elastream.policies.incremental:Incremental",
        "rlearning": "elastream.policies.rlearning:RLearning",
        "srea": "elastream.policies.bgelasor:Srea",
        "spea": "elastream.policies.bgelasor:Spea",
        "cba": "elastream.policies.bgelasor:Cba",
        "reactive": "elastream.policies.reactive:Reactive",
        "slots": "elastream.policies.reactive:Slots",
        "deadline": "elastream.policies.deadline:Deadline",
        "slo": "elastream.policies.slo:Slo",
        "oracle": "elastream.policies.oracle:Oracle",
    },
)
