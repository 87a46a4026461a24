"""What is installed is written down: every version, and every licence."""

import re
import tomllib
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


def test_every_direct_dependency_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = chain(project["dependencies"], *project["optional-dependencies"].values())
    named = {plain(re.match(r"[\w.-]+", need)[0]) for need in needs} - {project["name"]}
    missing = named - locked().keys()
    assert not missing, "run 'make lock'"


def test_every_locked_package_has_its_licence_listed():
    rows = re.findall(
        r"^\| ([\w.-]+) \| (\d\S*) \| (.+?) \| .+ \|$",
        (ROOT / "docs/licences.md").read_text(),
        re.M,
    )
    assert {plain(name): version for name, version, _ in rows} == locked()
    assert all(licence for _, _, licence in rows)
