"""What `make bench` found, kept as JSON, and compared with what was kept before.

A file has the commit and the machine, so that figures of different machines are not taken for
steps. Commit a file to keep it: later runs are compared with the newest value of each figure that
the same kind of machine has measured.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure, Section

FOLDER = Path(__file__).parent / "results"
NOISE = 0.15
"""A figure that is worse by less may be noise: the machines are shared."""
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")
_LOWER = ("ms", "µs", " s", "MB", "of a core")
"""Units of which less is better; of events per second, more is."""


@dataclass(frozen=True)
class Step:
    """A figure beside the last one kept."""

    section: str
    what: str
    before: str
    after: str
    change: float
    """Above 0 it is better now."""
    baseline: bool = False
    """Whether it is of something that ours is compared with."""

    @property
    def back(self) -> bool:
        """Whether it is ours, and worse than noise explains."""
        return not self.baseline and self.change < -NOISE


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    model = "unknown"
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = next((line.split()[1] for line in _lines("/proc/meminfo")), "0")
    return {
        "cores": os.cpu_count(),
        "processor": model,
        "memory_gb": round(int(memory) / 1e6),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def commit() -> str:
    """The commit that is measured; with a plus if there is more."""
    head = _git("rev-parse", "--short", "HEAD") or "unknown"
    return head + "+" if _git("status", "--porcelain", "--untracked-files=no") else head


def keep(sections: Sequence[Section], folder: Path = FOLDER) -> Path:
    """Write all figures down; returns where."""
    now = datetime.now(UTC)
    found = {
        "commit": commit(),
        "time": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "sections": [
            {"title": section.title, "figures": [asdict(figure) for figure in section.figures]}
            for section in sections
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{now:%Y-%m-%dT%H%M%S}-{found['commit'].rstrip('+')}.json"
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return file


def last_kept(folder: Path = FOLDER) -> dict[tuple[str, str], Figure]:
    """The newest value of every figure that a machine of this kind has measured."""
    found: dict[tuple[str, str], Figure] = {}
    here = _kind(machine())
    for file in sorted(folder.glob("*.json")):
        kept = json.loads(file.read_text())
        if _kind(kept["machine"]) != here:
            continue
        for section in kept["sections"]:
            for figure in section["figures"]:
                found[section["title"], figure["what"]] = Figure(**figure)
    return found


def steps(sections: Sequence[Section], before: Mapping[tuple[str, str], Figure]) -> list[Step]:
    """Every figure that was kept before and can be compared, the worst first."""
    found = []
    for section in sections:
        for figure in section.figures:
            old = before.get((section.title, figure.what))
            change = None if old is None else change_of(old.measured, figure)
            if old is not None and change is not None:
                compared = old.measured, figure.measured, change, figure.baseline
                found.append(Step(section.title, figure.what, *compared))
    return sorted(found, key=lambda step: step.change)


def change_of(before: str, figure: Figure) -> float | None:
    """How much better a figure is than before, as a share; None if nothing says which way is.

    Of several numbers, such as a mean and a p99, the one that got worst counts.

    >>> change_of("100 ms", Figure("", "80 ms")), change_of("1,000/s", Figure("", "800/s"))
    (0.2, -0.2)
    >>> change_of("80, 200 ms", Figure("", "80, 300 ms")), change_of("3", Figure("", "4"))
    (-0.5, None)
    >>> change_of("0.10", Figure("share", "0.05", target="0.2", met=True))
    0.5
    """
    old, new = _numbers(before), _numbers(figure.measured)
    falls = _less_is_better(figure)
    if falls is None or not old or len(old) != len(new) or 0 in old:
        return None
    ratios = [now / then for then, now in zip(old, new, strict=True)]
    return round(1 - max(ratios) if falls else min(ratios) - 1, 3)


def _less_is_better(figure: Figure) -> bool | None:
    """By its unit, or else by which side of its target is the good one."""
    if figure.measured.endswith("/s"):
        return False
    if figure.measured.endswith(_LOWER):
        return True
    measured, target = _numbers(figure.measured), _numbers(figure.target)
    if figure.met is None or len(measured) != 1 or len(target) != 1 or measured == target:
        return None
    return (measured < target) == figure.met


def _numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in _NUMBER.findall(text)]


def _kind(of: Mapping[str, Any]) -> tuple[Any, Any]:
    return of["cores"], of["processor"]


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text().splitlines()
    except OSError:
        return []


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
