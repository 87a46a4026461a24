"""Wake-ups between processes of one machine."""

from contextlib import ExitStack, closing

import pytest

from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.sqlite.backend import SqliteBackend
from elastream.engines.spark.backends.sqlite.wakeup import NEWS, Sleeper, Waker, remove_sockets

LONG = "takes-" + 30 * "very-" + "long"


@pytest.mark.parametrize("operator", ["work", LONG])
def test_a_member_is_woken_whatever_its_operator_is_called(operator, tmp_path):
    with (
        closing(Sleeper(tmp_path, (operator, 7))) as sleeper,
        closing(Sleeper(tmp_path, (f"{operator}-too", 7))) as other,
        closing(Waker(tmp_path)) as waker,
    ):
        waker.wake((operator, 7), NEWS)
        assert sleeper.wait(10.0)
        waker.wake_all(operator, NEWS)
        assert sleeper.wait(10.0)
        assert not other.wait(0.0)
    remove_sockets(tmp_path)


def test_a_plan_wakes_sources_and_who_is_or_was_to_work_but_not_who_stays_idle(tmp_path):
    names = [("in", 0), *((operator, number) for operator in ("work", LONG) for number in range(3))]
    with ExitStack() as stack:
        connection = stack.enter_context(SqliteBackend(tmp_path).connect())
        members = {name: stack.enter_context(closing(Sleeper(tmp_path, name))) for name in names}

        def woken_by(*active):
            plan = LanePlan(dict.fromkeys(("work", LONG), active))
            connection.board.publish(plan)
            return {name for name, member in members.items() if member.wait(0.0)}

        assert woken_by(0, 1) == {name for name in names if name[1] < 2}
        assert woken_by(0, 2) == set(names)
        assert woken_by(0) == {name for name in names if name[1] != 1}
    remove_sockets(tmp_path)
