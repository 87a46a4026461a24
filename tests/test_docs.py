"""The documentation names what there is."""

import re
from pathlib import Path

import pytest

import elastream
from elastream.core.groupings import GROUPINGS
from elastream.policies import POLICIES
from elastream.policies.guards import GUARDS
from elastream.predictors import PREDICTORS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("examples/*/*.md")]
RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)")


def test_the_reference_has_the_whole_public_surface():
    shown = set(re.findall(r"^::: elastream\.(\w+)", (DOCS / "api.md").read_text(), re.MULTILINE))
    assert shown >= set(elastream.__all__) - {"__version__"}


@pytest.mark.parametrize("catalog", [POLICIES, PREDICTORS, GUARDS, GROUPINGS])
def test_every_name_that_users_type_is_explained(catalog):
    page = (DOCS / "policies.md").read_text()
    assert [name for name in catalog if f"`{name}`" not in page] == []


def test_pages_include_programs_in_a_way_that_the_formatter_leaves_alone():
    assert '\n--8<-- "examples/first_run.py:3:"\n' in (DOCS / "index.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(page):
    for file, heading in RELATIVE_LINK.findall(page.read_text()):
        target = page.parent / file if file else page
        assert target.exists(), f"{page.name} links to {file}"
        if heading and target.suffix == ".md":
            assert heading in headings(target), f"{page.name} links to {file}#{heading}"


@pytest.mark.parametrize("walk", ["One event", "One decision"])
def test_a_walk_through_the_code_is_short_and_leads_somewhere(walk):
    _, rest = (DOCS / "architecture.md").read_text().split(f"## {walk}\n")
    steps = re.findall(r"^\d+\. .*(?:\n +.*)*", rest.partition("\n## ")[0], re.MULTILINE)
    files = {file for step in steps for file in re.findall(r"`([\w/]+\.py)`", step)}
    assert 5 < len(files) <= 15
    for file in files:
        assert is_in_package(file), file


def test_the_glossary_says_where_everything_is():
    _, rest = (DOCS / "architecture.md").read_text().split("## Words\n")
    rows = re.findall(r"^\| .*`.*\|$", rest.partition("\n## ")[0], re.MULTILINE)
    assert len(rows) > 10
    for row in rows:
        for file in re.findall(r"`([^`]+)`", row.rsplit("|", 2)[1]):
            assert is_in_package(file), row


def is_in_package(file):
    package = ROOT / "src" / "elastream"
    return (package / file).is_file() or (package / "engines" / "spark" / file).is_file()


def headings(page):
    """As GitHub and MkDocs name them in links."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_a_broken_link_stops_the_build_of_the_site():
    (build,) = re.findall("mkdocs build.*", (ROOT / "Makefile").read_text())
    # Quiet, MkDocs drops the warnings that --strict counts.
    assert build == "mkdocs build --strict"
