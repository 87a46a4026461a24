"""An engine that plays back intervals and remembers what it was asked."""


class ManualClock:
    """Time that only moves when somebody sleeps."""

    def __init__(self):
        self.time = 0.0

    def now(self):
        return self.time

    def sleep_until(self, time):
        self.time = max(self.time, time)

    def wake(self):
        pass


class PlaybackEngine:
    """Gives out the intervals of a script; an exception in the script is raised."""

    def __init__(self, topology, script, apply_errors=()):
        self.topology = topology
        self.clock = ManualClock()
        self.plans = []
        self.closed = False
        self._script = iter(script)
        self._apply_errors = iter(apply_errors)

    def observe(self):
        step = next(self._script)
        if isinstance(step, Exception):
            raise step
        return step

    def apply(self, plan):
        error = next(self._apply_errors, None)
        if error:
            raise error
        self.plans.append(plan)

    def watch(self, watcher):
        pass

    def close(self):
        self.closed = True
