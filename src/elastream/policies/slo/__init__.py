"""`slo`: the fewest replicas that keep a latency objective. `policy` has its rules."""

from __future__ import annotations

from elastream.policies.slo.policy import Slo, seconds_of, slo

__all__ = ["Slo", "seconds_of", "slo"]
