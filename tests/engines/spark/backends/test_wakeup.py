"""Wake-ups between processes of one machine."""

from contextlib import closing

import pytest

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
