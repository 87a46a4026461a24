"""What a soak takes for growth."""

import math
import random

import pytest
from tests.chaos.soak import WARM_UP, grows

TIMES = [2.0 * n for n in range(300)]


@pytest.mark.parametrize(
    ("what", "value", "verdict"),
    [
        ("it stays", lambda t: 100.0, False),
        ("it swings", lambda t: 100 + 20 * math.sin(t / 15), False),
        ("it is noisy", lambda t: 100 + random.Random(t).uniform(-15, 15), False),
        ("it rises while it warms up", lambda t: 100 + min(t, WARM_UP * 600), False),
        ("it falls", lambda t: 400 - 0.2 * t, False),
        ("it leaks", lambda t: 100 + 0.2 * t, True),
        ("it leaks in steps", lambda t: 100 + 20 * (t // 100), True),
        ("it rises by less than the slack", lambda t: 10 + 0.02 * t, False),
    ],
)
def test_growth_is_what_goes_on_after_the_warm_up(what, value, verdict):
    assert grows(TIMES, [value(t) for t in TIMES], slack=20.0) == verdict, what
