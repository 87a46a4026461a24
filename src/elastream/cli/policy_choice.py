"""From the name of a policy that a user types to the policy itself."""

from __future__ import annotations

from elastream.errors import InvalidInputError
from elastream.experiments.runs import inputs_per_interval
from elastream.policies import POLICIES, Policy
from elastream.workloads.traces import Trace


def chosen_policy(name: str, replicas: int | None, trace: Trace, td: float) -> Policy:
    """The policy of that name; `static` is told how many, and `oracle` the future."""
    if name == "static":
        if replicas is None:
            raise InvalidInputError("the policy static needs --replicas: how many of each operator")
        return POLICIES[name](replicas=replicas)
    if replicas is not None:
        raise InvalidInputError(f"--replicas {replicas}: only the policy static takes it")
    if name == "oracle":
        return POLICIES[name](future=inputs_per_interval(trace, td))
    return POLICIES[name]()
