"""What is installed is written down: every version, and every licence."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def locked():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {plain(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_versions_are_exact_and_name_no_host():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[\w.-]+==[\w.+!]+", line), line


def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = chain(project["dependencies"], *project["optional-dependencies"].values())
    return {plain(re.match(r"[\w.-]+", need)[0]) for need in needs} - {project["name"]}


def imported():
    """The packages that elastream imports itself."""
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield str(node.module).partition(".")[0]


def test_every_direct_import_is_declared():
    packages = set(imported()) - sys.stdlib_module_names - {"elastream"}
    installed_by = packages_distributions()
    needed = {plain(installed_by[package][0]) for package in packages}
    assert needed <= declared()


def test_every_direct_dependency_is_locked():
    missing = declared() - locked().keys()
    assert not missing, "run 'make lock'"


def test_every_locked_package_has_its_licence_listed():
    rows = re.findall(
        r"^\| ([\w.-]+) \| (\d\S*) \| (.+?) \| .+ \|$",
        (ROOT / "docs/licences.md").read_text(),
        re.M,
    )
    assert {plain(name): version for name, version, _ in rows} == locked()
    assert all(licence for _, _, licence in rows)
