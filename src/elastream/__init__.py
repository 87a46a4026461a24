"""Predictive, elastic stream processing on Apache Spark.

| to | use |
| --- | --- |
| declare a pipeline | `Pipeline`; `Context`, for functions that write elsewhere |
| run it on Spark | `run`, which returns a `PipelineRun`; `session` |
| scale the executors of an existing query | `attach` |
| try a policy without Spark | `simulate` |
| feed it | a streaming DataFrame, any iterable of batches, or `replay` |
| choose | `slo("250 ms")`; `policy`, `predictor`, `guard`, `trace`: by name, with arguments |
| store the results | `sinks`, or `run[operator]`, a streaming DataFrame |
| annotate | `Status`, `Health`, `Settings`, `Cycle`, `Plan`, `Result`, `Trace`, `Scaler` |
| catch errors | `errors` |

The names in `__all__` are stable; everything else may change. Nothing heavy is imported before it
is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elastream.core.context import Context
from elastream.core.pipeline import Pipeline
from elastream.core.topology import Topology

if TYPE_CHECKING:
    from elastream import errors, sinks
    from elastream.control import Cycle, Settings
    from elastream.control.run import Result
    from elastream.core.decision import Plan
    from elastream.core.health import Health
    from elastream.policies.slo import slo
    from elastream.running.attach import attach
    from elastream.running.call import run, session
    from elastream.running.choices import guard, policy, predictor
    from elastream.running.handle import PipelineRun
    from elastream.running.scaler import Scaler
    from elastream.running.simulation import simulate
    from elastream.running.status import Status
    from elastream.running.traces import replay, trace
    from elastream.workloads.traces import Trace

__version__ = "0.1.0"

__all__ = [
    "Context",
    "Cycle",
    "Health",
    "Pipeline",
    "PipelineRun",
    "Plan",
    "Result",
    "Scaler",
    "Settings",
    "Status",
    "Topology",
    "Trace",
    "__version__",
    "attach",
    "errors",
    "guard",
    "policy",
    "predictor",
    "replay",
    "run",
    "session",
    "simulate",
    "sinks",
    "slo",
    "trace",
]

_LAZY = {
    "Cycle": "elastream.control",
    "Health": "elastream.core.health",
    "Plan": "elastream.core.decision",
    "Result": "elastream.control.run",
    "Scaler": "elastream.running.scaler",
    "Settings": "elastream.control",
    "Trace": "elastream.workloads.traces",
    "errors": "elastream.errors",
    "PipelineRun": "elastream.running.handle",
    "Status": "elastream.running.status",
    "attach": "elastream.running.attach",
    "guard": "elastream.running.choices",
    "policy": "elastream.running.choices",
    "predictor": "elastream.running.choices",
    "replay": "elastream.running.traces",
    "run": "elastream.running.call",
    "session": "elastream.running.call",
    "simulate": "elastream.running.simulation",
    "sinks": "elastream.sinks",
    "slo": "elastream.policies.slo",
    "trace": "elastream.running.traces",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _LAZY:
        raise AttributeError(f"module 'elastream' has no attribute {name!r}")
    module = import_module(_LAZY[name])
    found = globals()[name] = module if name in ("errors", "sinks") else getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
