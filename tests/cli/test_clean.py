import pytest
import typer

from elastream.engines.spark import backends
from elastream.engines.spark.backends.sqlite import SqliteBackend
from support.memory_backend import MemoryBackend


@pytest.fixture
def asked(monkeypatch):
    """What the user was asked; the answer is always yes."""
    questions = []
    monkeypatch.setattr(typer, "confirm", lambda text, abort: questions.append(text))
    return questions


def test_nobody_is_asked_about_a_folder_which_is_never_removed(tmp_path, elastream, asked):
    unused = elastream("clean", tmp_path)
    assert (unused.code, asked) == (2, [])
    assert f"{tmp_path}: no run has used this state" in unused.err
    SqliteBackend(tmp_path).prepare("words: in -> count", {})
    done = elastream("clean", tmp_path)
    assert done.code == 2
    assert f"the state sqlite:{tmp_path} is a folder: remove it yourself" in done.err
    assert asked == []


def test_a_state_is_removed_when_its_user_has_agreed_and_no_driver_uses_it(
    tmp_path, elastream, asked, monkeypatch
):
    state = MemoryBackend(str(tmp_path))
    state.prepare("words: in -> count", {})
    monkeypatch.setattr(backends, "open_backend", lambda name: state)
    with state.own():
        assert "is in use by process" in elastream("clean", "state").err
    assert (asked, state.exists) == ([], True)
    assert f"removed {state.url}" in elastream("clean", "state").out
    assert asked == [f"remove {state.url}, and every event that waits in it?"]
    assert not state.exists
