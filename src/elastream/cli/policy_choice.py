"""From the name of a policy that a user types to the policy itself."""

from __future__ import annotations

from pathlib import Path

from elastream.errors import InvalidInputError
from elastream.experiments.runs import inputs_per_interval
from elastream.policies import POLICIES, Policy
from elastream.policies.rlearning import RLearning
from elastream.workloads.traces import Trace


def chosen_policy(
    name: str, trace: Trace, td: float, replicas: int | None = None, table: Path | None = None
) -> Policy:
    """The policy of that name; some have to be told something.

    Args:
        name: What the user typed.
        trace: The input, which is the future that `oracle` knows.
        td: The length of an interval, in seconds.
        replicas: For `static`: how many of each operator.
        table: For `rlearning`: what `elastream learn` has learned; nothing yet unless given.
    """
    if replicas is not None and name != "static":
        raise InvalidInputError(f"--replicas {replicas}: only the policy static takes it")
    if table is not None and name != "rlearning":
        raise InvalidInputError(f"--table {table}: only the policy rlearning takes it")
    if name == "static":
        if replicas is None:
            raise InvalidInputError("the policy static needs --replicas: how many of each operator")
        return POLICIES[name](replicas=replicas)
    if name == "oracle":
        return POLICIES[name](future=inputs_per_interval(trace, td))
    return POLICIES[name]() if table is None else RLearning.load(table)
