"""Execute: passes changes on to the engine."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from elastream.core.decision import Change, Plan
from elastream.core.stats import ExecutorStats
from elastream.engines.base import Engine

log = logging.getLogger(__name__)


class Executor:
    """Applies plans, and what people set by hand, to an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._by_hand: dict[str, int] = {}

    def execute(
        self,
        plan: Plan,
        active: Mapping[str, int],
        advice_only: bool,
        executors: ExecutorStats | None = None,
    ) -> tuple[Change, ...]:
        """Apply the plan if it changes anything, or only say what it would change."""
        changes = plan.changes(active, executors.wanted if executors else None)
        if changes and not advice_only:
            self._engine.apply(plan)
        return changes

    def set_by_hand(self, replicas: Mapping[str, int]) -> None:
        """Apply what people have newly set by hand."""
        new = dict(replicas.items() - self._by_hand.items())
        self._by_hand = dict(replicas)
        try:
            if new:
                self._engine.apply(Plan(new))
        except Exception:  # The next plan has them, too.
            log.exception("replicas set by hand could not be applied: %s", new)
