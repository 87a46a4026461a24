"""Cells that take minutes, kept as JSON as soon as each is done.

A cell is one run. It is named after what is run, not after the experiment that asked for it: tables
that have a run in common share it. Its file says from which commit it was made.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from elastream.errors import InvalidInputError
from elastream.experiments.work import Curve, Measured

FORMAT = "elastream cell 2"


@dataclass(frozen=True)
class CellFolder:
    """Cells of any experiment."""

    folder: Path

    def stored(self, what: Mapping[str, Any], seed: int) -> Measured | None:
        """What came of this run, if it is there."""
        path = self.path(what, seed)
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if (content["format"], content["what"]) != (FORMAT, what):
                return None
            curves = tuple(Curve(**curve) for curve in content["curves"])
            return Measured(content["values"], curves, commits=(content["commit"],))
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidInputError(
                f"{path}: is not a cell of an experiment; remove it, and it is run again"
            ) from None

    def keep(self, what: Mapping[str, Any], seed: int, found: Measured, seconds: float) -> Measured:
        """Store a run that has taken this long; a half-written one is never seen."""
        path = self.path(what, seed)
        found = replace(found, commits=(commit(),))
        content = {
            "format": FORMAT,
            "what": what,
            "seed": seed,
            "commit": found.commits[0],
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(seconds, 1),
            "values": dict(found.values),
            "curves": [asdict(curve) for curve in found.curves],
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".part")
            unfinished.write_text(json.dumps(content, indent=1), encoding="utf-8")
            unfinished.replace(path)
        except OSError as error:
            raise InvalidInputError(f"{path}: cannot be written: {error.strerror}") from None
        return found

    def path(self, what: Mapping[str, Any], seed: int) -> Path:
        """Where a run is kept."""
        parts = (what["application"], what["policy"], what["predictor"])
        words = re.sub(r"[^a-z0-9]+", "-", " ".join(parts).lower()).strip("-")[:80]
        whole = sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]
        return self.folder / f"{words}-{whole}-{seed}.json"


def commit() -> str:
    """The last one that changed this package, with a plus if it was changed since.

    The version, if it is not in a repository.
    """
    package = str(Path(__file__).parents[1])
    git = ["git", "-C", package]
    try:
        ask = [*git, "log", "-1", "--abbrev=12", "--format=%h", "--", "."]
        found = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
        changed = [*git, "status", "--porcelain", "--untracked-files=no", "--", "."]
        dirty = subprocess.run(changed, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        found = dirty = ""
    return f"{found}{'+' if dirty else ''}" if found else version("elastream")
