"""Execute: hands the engine what has to change."""

from __future__ import annotations

from collections.abc import Mapping

from elastream.core.decision import Change, Plan
from elastream.engines.base import Engine


class Executor:
    """Applies plans to an engine, or, with `advice_only`, only says what it would change."""

    def __init__(self, engine: Engine, advice_only: bool) -> None:
        self._engine = engine
        self.advice_only = advice_only

    def execute(self, plan: Plan, active: Mapping[str, int]) -> tuple[Change, ...]:
        """Apply the plan if it changes anything; returns the changes."""
        changes = plan.changes(active)
        if changes and not self.advice_only:
            self._engine.apply(plan)
        return changes
