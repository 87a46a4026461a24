"""Operators that wait stand for operators that compute."""

import pytest

from elastream.experiments.computing import AsIfComputing
from engines.simulation.support import constant, engine, line


def test_time_spent_waiting_counts_as_use_of_the_cores_of_the_paper():
    topology = line(0.01, 0.02, pool=2, minimum=2)
    running = AsIfComputing(engine(topology, constant(50, 20)), cores=3)
    running.clock.sleep_until(20.0)
    found = running.observe().operators
    cores = {
        (name, number): (replica.core, replica.cpu)
        for name, of in found.items()
        for number, replica in of.replicas.items()
    }
    assert [core for core, _ in cores.values()] == [0, 1, 2, 0]
    assert [cpu for _, cpu in cores.values()] == pytest.approx([0.25, 0.25, 0.5, 0.5])
    assert running.topology is topology
    assert running.health().state == "running"
    running.close()
