from elastream.errors import ElastreamError, InvalidInputError, MissingExtraError, UnknownNameError


def test_every_error_has_one_root_and_a_familiar_parent():
    assert issubclass(InvalidInputError, ElastreamError)
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(UnknownNameError, LookupError)
    assert issubclass(MissingExtraError, ImportError)


def test_an_unknown_name_lists_what_there_is_when_nothing_is_close():
    assert str(UnknownNameError("grouping", "zzz", ["pull", "key"])) == (
        "unknown grouping 'zzz': There are: key, pull"
    )


def test_a_missing_extra_says_how_to_install_it():
    assert "pip install 'elastream[train]'" in str(MissingExtraError("the model 'gru'", "train"))
