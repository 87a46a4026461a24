"""List the licence of every package that elastream can bring along, as docs/licences.md has it.

`make lock` runs it in an environment that holds nothing but elastream with all of its extras, and
writes what it prints.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
UPLOT = ROOT / "src/elastream/service/page/vendor/uplot/uPlot.iife.min.js"
LONGEST_NAME = 60
"""What is longer is the licence's text, not its name."""
HEAD = """# Licences
elastream itself is Apache-2.0. `make lock` writes this page, from the packages' own
metadata, and `constraints.txt`.

## Shipped in the package
| what | version | licence |
| --- | --- | --- |
| uPlot, in the page | {uplot} | MIT |

## Installed with it
Each extra installs the packages listed for it; `dev` and `docs` are for work on elastream itself.
What elastream itself needs is always installed.

| package | version | licence | needed by |
| --- | --- | --- | --- |"""


def main() -> None:
    """Print the page."""
    (version,) = re.findall(r"uPlot \(v([\d.]+)\)", UPLOT.read_text()[:1_000])
    print(HEAD.format(uplot=version))
    needed = needed_by_extra()
    for name in sorted(needed):
        found = metadata.metadata(name)
        extras = ", ".join(sorted(needed[name], key=lambda extra: (extra != "elastream", extra)))
        print(f"| {found['Name']} | {found['Version']} | {licence(found)} | {extras} |")


def needed_by_extra() -> dict[str, set[str]]:
    """Every installed package that elastream needs, and the extras that need it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for extra in ["", *(metadata.metadata("elastream").get_all("Provides-Extra") or ())]:
        # What `all` brings along is listed for the extras that it stands for.
        for name in closure("elastream", extra) - {"elastream"} if extra != "all" else ():
            found[name].add(extra or "elastream")
    # What is always there needs no further reason.
    return {
        name: {"elastream"} if "elastream" in extras else extras for name, extras in found.items()
    }


def closure(package: str, extra: str) -> set[str]:
    """All installed packages that this one needs, with that extra."""
    found: set[str] = set()
    waiting = [(package, extra)]
    while waiting:
        for name, extras in requirements(*waiting.pop()):
            if name not in found or extras:
                found.add(name)
                waiting += [(name, each) for each in ["", *extras] if (name, each) not in waiting]
    return found


def requirements(package: str, extra: str) -> Iterator[tuple[str, list[str]]]:
    """What it needs that is installed; with an extra, only what that adds."""
    for text in metadata.requires(package) or ():
        need, _, marker = text.partition(";")
        match = re.match(r"\s*([\w.-]+)\s*(?:\[([^]]*)\])?", need)
        wanted = re.findall(r"extra\s*==\s*['\"]([^'\"]+)", marker)
        if match and wanted == ([extra] if extra else []) and installed(match[1]):
            extras = [part.strip() for part in (match[2] or "").split(",") if part.strip()]
            yield re.sub(r"[-_.]+", "-", match[1]).lower(), extras


def installed(name: str) -> bool:
    """Whether it is there; packages for other systems or versions of Python are not."""
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def licence(found: metadata.PackageMetadata) -> str:
    """As the package names it: by an expression, a classifier, or a free text."""
    if found["License-Expression"]:
        return str(found["License-Expression"])
    classifiers = [
        part.rpartition(" :: ")[2]
        for part in found.get_all("Classifier") or ()
        if part.startswith("License :: OSI Approved ::")
    ]
    if classifiers:
        return " / ".join(classifiers)
    text = (found["License"] or "").strip()
    return text if 0 < len(text) <= LONGEST_NAME and "\n" not in text else "see the package"


if __name__ == "__main__":
    main()
