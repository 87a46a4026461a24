"""Predictive, elastic stream processing on Apache Spark."""

from elastream.core.pipeline import Pipeline
from elastream.core.topology import Topology

__version__ = "0.1.0"

__all__ = ["Pipeline", "Topology", "__version__"]
