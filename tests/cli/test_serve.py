"""`elastream serve`, where it refuses to start; tests/service starts it."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "so the service requires a token: set ELASTREAM_TOKEN"),
        (["--host", "0.0.0.0", "--token", "short"], "a token must have at least 16 characters"),
        (["--models", "magic"], "unknown predictor 'magic'"),
        (["--models", "bigru"], "the predictor 'bigru' needs a trained model"),
        (["--port", "70000"], "--port"),
        (["--timeout", "0"], "--timeout"),
        (["--workers", "0"], "--workers"),
    ],
)
def test_a_mistake_ends_with_exit_code_2(
    elastream: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.delenv("ELASTREAM_TOKEN", raising=False)
    shown = elastream("serve", *arguments)
    assert shown.code == 2
    assert message in shown.err
    assert "Traceback" not in shown.err


def test_named_tokens_count_beside_the_one_that_is_given(
    elastream: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTREAM_TOKENS", "anna=short")
    shown = elastream("serve", "--token", "correct-horse-battery")
    assert shown.code == 2
    assert "that of 'anna' is not" in shown.err


def test_without_fastapi_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['fastapi'] = None; sys.argv = ['elastream', 'serve'];"
        "from elastream.cli import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr == (
        "elastream: the predictor service needs an extra: pip install 'elastream[serve]'\n"
    )
