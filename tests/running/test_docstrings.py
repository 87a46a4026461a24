"""Docstring examples that need Spark: doctest skips them, and these tests do not."""

import doctest

import pytest

import elastream


@pytest.mark.parametrize("name", ["run", "session", "PipelineRun", "attach"])
def test_the_example_runs(name, spark_session, capsys):
    # With a session there, `elastream.run` and `elastream.session` take it.
    found = getattr(elastream, name)
    (example,) = doctest.DocTestFinder(recurse=False).find(found, name, globs={})
    for line in example.examples:
        line.options.pop(doctest.SKIP, None)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(example).failed == 0, capsys.readouterr().out
    assert len(example.examples) > 3
