import pytest

from elastream.running.service import recorded_by


class Listener:
    def __init__(self, *errors):
        self.heard, self._errors = [], errors

    def record(self, entry):
        self.heard.append(entry)
        for error in self._errors:
            raise error


def test_a_page_that_fails_does_not_keep_the_history_from_recording():
    page, history = Listener(OSError("no page")), Listener()
    with pytest.raises(OSError, match="no page"):
        recorded_by(page, history)("a cycle")
    assert page.heard == history.heard == ["a cycle"]


def test_nobody_has_to_listen():
    recorded_by(None, None)("a cycle")
