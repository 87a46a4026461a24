"""Plan: what the policy proposes, and what its guards allow."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from elastream.control.monitor import REMEMBERED_INTERVALS
from elastream.control.settings import Course
from elastream.core.decision import Plan
from elastream.policies.base import Context
from elastream.policies.guards import Guard, guarded


class Planner:
    """A policy inside of guards: those of the loop, then those of its settings."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        self.guards = tuple(guards)
        self.proposals: deque[Plan] = deque(maxlen=REMEMBERED_INTERVALS)

    def plan(self, context: Context, course: Course) -> tuple[Plan, Plan]:
        """The policy's proposal, and the plan that the guards allow."""
        proposal = course.policy.decide(context)
        self.proposals.append(proposal)
        return proposal, guarded(proposal, context, (*self.guards, *course.guards))
