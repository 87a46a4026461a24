from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from elastream.core.waiting import WaitingTime


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=40))
def test_it_is_the_age_of_the_first_in_a_queue(windows):
    """Events are taken in as of the beginning of their window."""
    followed, queue = WaitingTime(), deque()
    for number, (came, most) in enumerate(windows):
        queue.extend([float(number)] * came)
        for _ in range(min(most, len(queue))):
            queue.popleft()
        now = number + 1.0
        assert followed.after(now, came, len(queue)) == (now - queue[0] if queue else 0.0)


def test_what_was_there_before_is_as_old_as_the_look():
    followed = WaitingTime(now=5.0)
    assert followed.after(6.0, came=1, waits=100) == 1.0
    assert followed.after(7.0, came=1, waits=50) == 2.0
    assert followed.after(8.0, came=1, waits=1) == 1.0
