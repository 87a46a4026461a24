"""What the Spark engine adds to every event, as settings of the simulator.

- `unit_seconds`: 20 ms of work, as the engine sizes what a replica takes at once.
- `activation_delay`: 58 ms, the median from a plan to the first event of a new replica, as
  `python -m benchmarks.spark.elasticity` measures it.
- `hop_delay` and `unit_overhead` come from one run on a quiet machine with two cores: PA-SPS table
  2 with `ann`, at speed 4, on the recorded Twitter trace. At 390 events/s, where nothing waits and
  a unit has 4 events, four operators took 36 ms, of which 21 ms are units: 4 ms a hop. With all 32
  replicas at work and queues behind them they processed 5,420 events/s, where 6,074 would be
  without overhead. That works out as 2.4 ms for every unit of 15 events.

The last two depend on the machine.
"""

from __future__ import annotations

from dataclasses import replace

from elastream.engines.simulation.settings import SimulationSettings

UNIT_SECONDS = 0.02
ACTIVATION_DELAY = 0.058
HOP_DELAY = 0.004
UNIT_OVERHEAD = 0.0024


def as_on_spark(settings: SimulationSettings) -> SimulationSettings:
    """The settings, with what the Spark engine adds.

    >>> as_on_spark(SimulationSettings()).unit(execution_time=0.004)
    5
    """
    return replace(
        settings,
        unit_seconds=UNIT_SECONDS,
        unit_overhead=UNIT_OVERHEAD,
        hop_delay=HOP_DELAY,
        activation_delay=ACTIVATION_DELAY,
    )
