"""Plan: what the policy proposes, what its guards allow, and the executors that it needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from elastream.control.executors import ExecutorLevel
from elastream.control.settings import Course
from elastream.core.decision import Plan
from elastream.policies.base import REMEMBERED_INTERVALS, Context
from elastream.policies.guards import Guard, guarded


class Planner:
    """A policy inside of guards: those of the loop, then those of its settings."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        self.guards = tuple(guards)
        self.proposals: deque[Plan] = deque(maxlen=REMEMBERED_INTERVALS)
        self._executors = ExecutorLevel()

    def plan(self, context: Context, course: Course) -> tuple[Plan, Plan]:
        """The policy's proposal, and the plan that the guards allow."""
        proposal = course.policy.decide(context)
        self.proposals.append(proposal)
        guards = (*self.guards, *course.guards)
        plan = guarded(proposal, context, guards)
        if not course.settings.paused:
            plan = self._executors.added_to(plan, context, guards)
        return proposal, plan
