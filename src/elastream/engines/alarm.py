"""Sleep that can be cut short."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Alarm:
    """Whoever waits for it sleeps; whoever rings it, from any thread or a signal, ends the sleep.

    >>> alarm = Alarm()
    >>> alarm.ring()
    >>> alarm.wait(60.0), alarm.wait(0.001)
    (True, False)
    """

    def __init__(self) -> None:
        # Of all that can be waited for, only this one may be touched by a handler of signals.
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """End the sleep, or the next one if nobody sleeps."""
        self._rings.put(None)

    def wait(self, seconds: float) -> bool:
        """Sleep so long, or until it rings; returns whether it rang."""
        try:
            self._rings.get(timeout=max(seconds, 0.0))
        except Empty:
            return False
        return True
