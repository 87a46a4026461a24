"""What the Spark engine adds to every event, as settings of the simulator.

| setting | value | where it comes from |
| --- | --- | --- |
| `unit` | 18 events, or 20 ms of work | the Spark engine's own: what stays together on the way, and what a replica takes at once |
| `hop_delay` | 5 ms | measured: `python -m benchmarks.spark.groupings equal`, 50 % load, less the unit |
| `activation_delay` | 58 ms | measured: `python -m benchmarks.spark.elasticity`, median from a plan to the first event |
"""  # noqa: E501

from __future__ import annotations

from dataclasses import replace

from elastream.engines.simulation.settings import SimulationSettings

UNIT, UNIT_SECONDS = 18, 0.02
HOP_DELAY = 0.005
ACTIVATION_DELAY = 0.058


def as_on_spark(settings: SimulationSettings, execution_time: float) -> SimulationSettings:
    """The settings, with what the Spark engine adds where events take about so long, in seconds.

    >>> as_on_spark(SimulationSettings(), execution_time=0.004).unit
    5
    """
    unit = max(min(UNIT, round(UNIT_SECONDS / execution_time)), 1)
    return replace(settings, unit=unit, hop_delay=HOP_DELAY, activation_delay=ACTIVATION_DELAY)
