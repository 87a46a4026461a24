"""The second engine: a simulator in virtual time.

A fluid model: what it costs grows with time steps and operators, not with events.
"""

from elastream.engines.base import WhenFull
from elastream.engines.simulation.clock import PacedClock
from elastream.engines.simulation.engine import SimulationEngine
from elastream.engines.simulation.settings import Arrivals, SimulationSettings

__all__ = ["Arrivals", "PacedClock", "SimulationEngine", "SimulationSettings", "WhenFull"]
