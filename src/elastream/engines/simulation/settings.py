"""The conditions under which a simulation runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from elastream.engines.base import WhenFull
from elastream.engines.simulation.executors import ExecutorSettings
from elastream.errors import InvalidInputError

MOST_IN_UNIT = 10_000
"""How many events a replica takes at once at most, however little they take."""


class Arrivals(Enum):
    """How events arrive within a step of the trace."""

    STEADY = "steady"
    """Evenly: exactly as many as the trace says."""
    POISSON = "poisson"
    """At random: as many as the trace says, on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """All but the pipeline and its input. Times are in seconds."""

    step: float = 0.25
    """The resolution in time. What happens within a step is taken to happen evenly over it."""
    sample: float = 1.0
    """The length of a sampling window of the input."""
    queue_bound: float = 100_000
    """How many events may wait for one operator."""
    when_full: WhenFull = WhenFull.BLOCK
    time_out: float | None = None
    """Events that wait longer for one operator are dropped (t_out of PA-SPS)."""
    activation_delay: float = 0.0
    """How long after a plan an activated replica starts to work."""
    levels: tuple[tuple[int, float], ...] = ()
    """Beyond this many replicas of an operator, one takes this long instead, lowest first: it needs
    something else first, such as an executor."""
    executors: ExecutorSettings | None = None
    """Replicas and sources run in the task slots of executors, which have a lead time and a size;
    plans say how many there are. None: there is room for every replica."""
    restart_downtime: float | None = None
    """Every change restarts the pipeline, as in Storm: for this long nothing is processed, and what
    waits or arrives is lost. None: replicas come and go while it runs."""
    report: float = 1.0
    """How often groupings that need it learn what waits for replicas."""
    own_queues: bool = False
    """Whether every replica has a queue of its own even where all replicas are alike: then it
    matters who gets which event, and a replica that is new has nothing to do at first. It takes ten
    times as long while something waits."""
    cores: int | None = None
    """How many processor cores all replicas share. None: each has its own."""
    hop_delay: float = 0.0
    """What an engine adds to every event on its way into an operator: to measure on a real one."""
    unit_seconds: float = 0.0
    """How much work a replica takes at once; an event leaves it with its whole unit. 0: events are
    taken one by one."""
    unit_overhead: float = 0.0
    """What a replica spends on a unit besides its function: taking events, handing results on. It
    counts as neither work nor idle time."""
    arrivals: Arrivals = Arrivals.STEADY
    initial: Mapping[str, int] = field(default_factory=dict)
    """Active replicas at the start; the minimum of operators that are not listed."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("step", "sample", "queue_bound", "report"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InvalidInputError(f"{name}={getattr(self, name)}: it must be above 0")
        counts = [count for count, _ in self.levels]
        if counts != sorted(set(counts)) or not all(0 <= s < float("inf") for _, s in self.levels):
            raise InvalidInputError(
                f"levels={self.levels}: give (replicas, seconds), the fewest replicas first"
            )
        if self.cores is not None and self.cores < 1:
            raise InvalidInputError(f"cores={self.cores}: there must be at least 1")
        for name in (
            "time_out",
            "activation_delay",
            "restart_downtime",
            "hop_delay",
            "unit_seconds",
            "unit_overhead",
        ):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise InvalidInputError(f"{name}={value}: it must be 0 s or more")
        if self.executors is not None and self.restart_downtime is not None:
            raise InvalidInputError(
                f"restart_downtime={self.restart_downtime}: with executors, replicas come and go "
                "while the pipeline runs; leave out one of the two"
            )

    def unit(self, execution_time: float) -> int:
        """How many events a replica takes at once.

        >>> SimulationSettings(unit_seconds=0.02).unit(0.004)
        5
        """
        return max(min(round(self.unit_seconds / execution_time), MOST_IN_UNIT), 1)

    def in_function(self, execution_time: float) -> float:
        """The part of a busy replica's time that it spends in its function.

        >>> settings = SimulationSettings(unit_seconds=0.018, unit_overhead=0.002)
        >>> round(settings.in_function(0.001), 3)
        0.9
        """
        work = self.unit(execution_time) * execution_time
        return work / (work + self.unit_overhead)
