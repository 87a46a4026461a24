import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from elastream.cli import main


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def elastream(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Run the command line as a user does, in this process; how we log stays as it was."""
    ours = logging.getLogger("elastream")
    monkeypatch.setattr(ours, "propagate", ours.propagate)
    monkeypatch.setattr(ours, "handlers", [*ours.handlers])

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["elastream", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return Ended(int(ended.value.code or 0), shown.out, shown.err)

    return run
