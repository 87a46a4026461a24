"""The documentation names what there is."""

import re
from pathlib import Path

import pytest

import elastream
from elastream.core.groupings import GROUPINGS
from elastream.policies import POLICIES
from elastream.policies.guards import GUARDS
from elastream.predictors import PREDICTORS

DOCS = Path(__file__).parents[1] / "docs"


def test_the_reference_has_the_whole_public_surface():
    shown = set(re.findall(r"^::: elastream\.(\w+)", (DOCS / "api.md").read_text(), re.MULTILINE))
    assert shown >= set(elastream.__all__) - {"__version__"}


@pytest.mark.parametrize("catalog", [POLICIES, PREDICTORS, GUARDS, GROUPINGS])
def test_every_name_that_users_type_is_explained(catalog):
    page = (DOCS / "policies.md").read_text()
    assert [name for name in catalog if f"`{name}`" not in page] == []


def test_pages_include_programs_in_a_way_that_the_formatter_leaves_alone():
    assert '\n--8<-- "examples/first_run.py:3:"\n' in (DOCS / "index.md").read_text()
