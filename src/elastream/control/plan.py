"""Plan: what the policy proposes, and what its guards allow of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from elastream.control.monitor import REMEMBERED_INTERVALS
from elastream.core.decision import Plan
from elastream.policies.base import Context, Policy
from elastream.policies.guards import Guard, guarded


class Planner:
    """A policy inside of its guards."""

    def __init__(self, policy: Policy, guards: Sequence[Guard]) -> None:
        self.policy = policy
        self.guards = tuple(guards)
        self.proposals: deque[Plan] = deque(maxlen=REMEMBERED_INTERVALS)

    def plan(self, context: Context) -> tuple[Plan, Plan]:
        """The policy's proposal, and the plan that the guards allow."""
        proposal = self.policy.decide(context)
        self.proposals.append(proposal)
        return proposal, guarded(proposal, context, self.guards)
