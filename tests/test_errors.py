import builtins
import inspect
import re

from elastream import errors
from elastream.errors import ElastreamError, MissingExtraError, UnknownNameError

LINE = re.compile(r"^(?P<lead>[│├└─ ]*)(?P<name>\w+Error)\b.*?(?:\(also an? (?P<also>\w+)\))?$")


def drawn():
    """The tree in the docstring: for every error its parents."""
    _, tree, _ = errors.__doc__.split("```")
    above, found = [], {}
    for line in tree.strip().splitlines():
        match = LINE.match(line)
        assert match, f"a line of the tree without an error: {line}"
        depth = len(match["lead"]) // 4
        above[depth:] = [match["name"]]
        found[match["name"]] = {*above[depth - 1 : depth], *filter(None, [match["also"]])}
    return found


def test_the_tree_in_the_docstring_is_that_of_the_classes():
    classes = {
        name: {parent.__name__ for parent in kind.__bases__}
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, ElastreamError)
    }
    assert classes.pop("ElastreamError") == {"Exception"}
    tree = drawn()
    assert tree.pop("ElastreamError") == set()
    assert tree == classes
    assert all(
        hasattr(builtins, each) or each in vars(errors) for of in tree.values() for each in of
    )


def test_an_unknown_name_lists_what_there_is_when_nothing_is_close():
    assert str(UnknownNameError("grouping", "zzz", ["pull", "key"])) == (
        "unknown grouping 'zzz': There are: key, pull"
    )


def test_a_missing_extra_says_how_to_install_it():
    assert "pip install 'elastream[train]'" in str(MissingExtraError("the model 'gru'", "train"))
