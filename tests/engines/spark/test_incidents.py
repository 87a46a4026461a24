"""What has gone wrong from one look to the next."""

import pytest

from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.members import Attendance
from elastream.engines.spark.driver.incidents import Incidents
from support import pipelines
from support.memory_backend import MemoryBackend


def interval(*operators):
    """In which all went well."""
    return pipelines.interval(pipelines.line(*operators), 10.0)


@pytest.fixture
def end(tmp_path):
    backend = MemoryBackend(str(tmp_path))
    connection = backend.connect()
    connection.lanes.join(("work", 0), 1)
    return connection


def set_aside(end, error, events=1, operator="work"):
    letter = DeadLetter(operator, events, error, b"")
    assert end.lanes.commit([], [], Counts(), [letter])


def members(**processes):
    """By operator and number, as in `work_0`: the process that acts for it."""
    found = {}
    for name, (process, generation) in processes.items():
        operator, _, number = name.rpartition("_")
        found[operator, int(number)] = Attendance(process, generation, 0, 0.0)
    return found


def test_only_what_is_new_counts_and_it_counts_once(end):
    set_aside(end, "ValueError: old")
    incidents = Incidents(end.dead_letters)
    assert incidents.noted(interval("work"), {}).operators["work"].set_aside == 0
    set_aside(end, "ValueError: a", 2)
    set_aside(end, "ValueError: a", 3)
    set_aside(end, "KeyError: b")
    noted = incidents.noted(interval("work"), {}).operators["work"]
    assert (noted.set_aside, noted.errors) == (6, {"ValueError: a": 5, "KeyError: b": 1})
    assert incidents.noted(interval("work"), {}).operators["work"].set_aside == 0


def test_everybody_has_their_own(end):
    incidents = Incidents(end.dead_letters)
    set_aside(end, "ValueError: a", operator="store")
    noted = incidents.noted(interval("work", "store"), {}).operators
    assert (noted["work"].set_aside, noted["store"].set_aside) == (0, 1)


def test_two_who_look_count_each_for_themselves(end):
    first, second = Incidents(end.dead_letters), Incidents(end.dead_letters)
    set_aside(end, "ValueError: a")
    for incidents in (first, second):
        assert incidents.noted(interval("work"), {}).operators["work"].set_aside == 1


def test_another_process_of_the_same_generation_is_a_restart(end):
    incidents = Incidents(end.dead_letters)

    def restarted(**processes):
        stats = incidents.noted(interval("work", "store"), members(**processes))
        return {name: of.restarted for name, of in stats.operators.items()}

    nothing = {"work": 0, "store": 0}
    assert restarted(work_0=("1:a", 1), work_1=("2:b", 1), store_0=("3:c", 1)) == nothing
    assert restarted(work_0=("1:a", 1), work_1=("9:x", 1), store_0=("3:c", 1)) == {
        "work": 1,
        "store": 0,
    }
    assert restarted(work_0=("4:d", 2), work_1=("5:e", 2), store_0=("6:f", 2)) == nothing


def test_one_that_is_away_for_a_look_is_not_a_restart(end):
    """Nobody can tell whether it died or was given another role."""
    incidents = Incidents(end.dead_letters)
    looks = (members(work_0=("1:a", 1)), {}, members(work_0=("2:b", 1)))
    found = [incidents.noted(interval("work"), look).operators["work"].restarted for look in looks]
    assert found == [0, 0, 0]
