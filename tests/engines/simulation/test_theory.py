"""The simulator against what queueing theory knows."""

import math

import pytest
from tests.engines.simulation.support import constant, engine, one, watch

from elastream.core.service_times import Exponential
from elastream.engines.simulation import Arrivals


def erlang_c(servers, load):
    """The probability that an event has to wait in M/M/c."""
    idle = sum(load**k / math.factorial(k) for k in range(servers))
    busy = load**servers / math.factorial(servers) * servers / (servers - load)
    return busy / (idle + busy)


@pytest.mark.parametrize(("servers", "rate", "seconds"), [(1, 50, 2500), (3, 210, 1500)])
def test_waiting_times_are_those_of_mmc(servers, rate, seconds):
    service = 0.01
    topology, behaviour = one(Exponential(service), pool=servers, minimum=servers)
    settings = {"step": service / 5, "arrivals": Arrivals.POISSON, "seed": 1}
    running = engine(topology, constant(rate, seconds), behaviour, **settings)
    (stats,) = watch(running, seconds)
    theory = erlang_c(servers, rate * service) * service / (servers - rate * service)
    assert stats.latency.mean - service == pytest.approx(theory, rel=0.05)
