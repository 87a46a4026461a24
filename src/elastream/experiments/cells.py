"""Cells of an experiment that take minutes, kept as JSON as soon as each is done.

A cell is one run of one row. Its file says with which settings and from which commit it was made; a
cell that was made with other settings, or from another input, does not count.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from elastream.errors import InvalidInputError
from elastream.experiments.base import Experiment, Inputs
from elastream.experiments.work import Curve, Measured

FORMAT = "elastream cell 1"


@dataclass(frozen=True)
class CellFolder:
    """The cells of one experiment with one set of inputs."""

    folder: Path
    settings: dict[str, Any]
    """What must be the same for a stored cell to count."""

    @classmethod
    def of(cls, folder: Path, experiment: Experiment, inputs: Inputs) -> CellFolder:
        """Below this folder, with a name that tells the settings apart."""
        settings = {
            "experiment": experiment.name,
            "engine": "spark",
            "speed": inputs.speed,
            "scale": inputs.scale,
            "traces": {name: _digest(inputs, name) for name in experiment.traces},
        }
        return cls(folder / f"cells-speed-{inputs.speed:g}-scale-{inputs.scale:g}", settings)

    def stored(self, row: str, seed: int) -> Measured | None:
        """The cell, if it is there."""
        path = self._path(row, seed)
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if (content["format"], content["settings"]) != (FORMAT, self.settings):
                return None
            curves = tuple(Curve(**curve) for curve in content["curves"])
            return Measured(content["values"], curves)
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidInputError(
                f"{path}: is not a cell of an experiment; remove it, and it is run again"
            ) from None

    def keep(self, row: str, seed: int, found: Measured, seconds: float) -> None:
        """Store a cell that has taken this long; a half-written one is never seen."""
        path = self._path(row, seed)
        content = {
            "format": FORMAT,
            "settings": self.settings,
            "row": row,
            "seed": seed,
            "commit": _commit(),
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

    def _path(self, row: str, seed: int) -> Path:
        name = re.sub(r"[^a-z0-9]+", "-", row.lower()).strip("-")
        return self.folder / f"{name}-{seed}.json"


def _digest(inputs: Inputs, name: str) -> str:
    """The same for the same rates, whatever the file is called."""
    return sha256(inputs.trace(name).values.tobytes()).hexdigest()[:16]


def _commit() -> str:
    """Of the source that runs, with a plus if it was changed since; the version if it has none."""
    here = Path(__file__).parent
    try:
        ask = ["git", "-C", str(here), "describe", "--always", "--abbrev=12", "--dirty=+"]
        tracked = ["git", "-C", str(here), "ls-files", "--error-unmatch", Path(__file__).name]
        subprocess.run(tracked, check=True, capture_output=True)
        found = subprocess.run(ask, check=True, capture_output=True, text=True)
        return found.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return version("elastream")
