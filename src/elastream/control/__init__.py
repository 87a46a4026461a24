"""The control loop: monitor, analyze, plan, execute, over any engine."""

from elastream.control.loop import ControlLoop, Cycle, Outcome
from elastream.control.settings import Choices, Limits, Settings, Steered

__all__ = ["Choices", "ControlLoop", "Cycle", "Limits", "Outcome", "Settings", "Steered"]
