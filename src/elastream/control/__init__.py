"""The control loop: monitor, analyze, plan, execute, over any engine."""

from elastream.control.loop import ControlLoop, Cycle, Outcome

__all__ = ["ControlLoop", "Cycle", "Outcome"]
