import pytest

from elastream.catalog import Catalog
from elastream.errors import UnknownNameError

CATALOG = Catalog("thing", {"counter": "collections:Counter", "broken": "no.such.module:Thing"})


def test_an_entry_is_imported_when_it_is_asked_for():
    assert CATALOG["counter"]("aab")["a"] == 2
    with pytest.raises(ModuleNotFoundError):
        CATALOG["broken"]


def test_names_can_be_listed_without_importing_anything():
    assert list(CATALOG) == ["counter", "broken"]
    assert "broken" in CATALOG
    assert len(CATALOG) == 2


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(UnknownNameError, match="unknown thing 'conter': did you mean 'counter'"):
        CATALOG["conter"]
