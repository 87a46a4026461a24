"""Predictive, elastic stream processing on Apache Spark."""

from importlib import import_module
from typing import Any

from elastream.core.pipeline import Pipeline
from elastream.core.topology import Topology

__version__ = "0.1.0"

__all__ = ["Pipeline", "Topology", "__version__", "attach"]


def __getattr__(name: str) -> Any:
    """What brings the control loop with it is imported when it is first asked for."""
    if name == "attach":
        return import_module("elastream.control.attach").attach
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
