import pytest

from elastream.control.windows import InWindows
from support.pipelines import interval, line

LINE = line("clean", "store")


def windows(samples, seconds):
    told = []
    watch = InWindows(seconds, told.append)
    for number, events in enumerate(samples):
        watch(interval(LINE, events, number=number))
    return told


def test_samples_are_joined_to_windows_of_the_length_that_is_asked_for():
    length = interval(LINE, 100).duration
    found = windows([100, 300, 500, 700, 900], 2 * length)
    assert [of.operators["clean"].processed for of in found] == [400, 1200]
    assert [of.duration for of in found] == pytest.approx([2 * length] * 2)


def test_samples_that_are_longer_stay_as_they_are():
    length = interval(LINE, 100).duration
    found = windows([100, 300], length / 5)
    assert [of.operators["clean"].processed for of in found] == [100, 300]
