import pytest

from elastream.core.pipeline import ARGUMENTS, Pipeline
from elastream.errors import InvalidTopologyError, UnknownNameError


def same(batch):
    return batch


def test_functions_and_decorators_declare_the_same_pipeline():
    pipeline = Pipeline("tweets")
    tweets = pipeline.source("tweets")

    @pipeline.operator(after=tweets, pool=4)
    def clean(batch):
        return [word for word in batch if word]

    pipeline.add(same, after=clean, name="store", pool=2, minimum=2, grouping="load-aware")
    topology = pipeline.topology()

    assert clean(["a", ""]) == ["a"]
    assert topology.order == ("tweets", "clean", "store")
    assert topology.by_name["store"].router.name == "load-aware"
    assert topology.by_name["clean"].pool == 4
    assert topology.terminals == ("store",)


def test_an_operator_may_have_several_predecessors_and_successors():
    pipeline = Pipeline()
    a, b = pipeline.source("a"), pipeline.source("b")
    pipeline.add(same, after=[a, b], name="join")
    pipeline.add(same, after="join", name="left", share=0.2)
    pipeline.add(same, after="join", name="right", share=0.8)
    pipeline.add(same, name="end")
    pipeline.connect("left", "end", when=bool)
    pipeline.connect("right", "end")
    topology = pipeline.topology()

    assert [edge.origin for edge in topology.incoming["join"]] == ["a", "b"]
    assert [edge.share for edge in topology.outgoing["join"]] == [0.2, 0.8]
    assert [edge.when for edge in topology.incoming["end"]] == [bool, None]


def test_set_up_and_tear_down_belong_to_an_operator():
    pipeline = Pipeline()
    pipeline.add(same, after=pipeline.source("in"), setup=list, teardown=list.clear)
    operator = pipeline.topology().by_name["same"]
    assert operator.setup is list
    assert operator.teardown == list.clear


def test_a_function_that_runs_twice_must_be_named():
    pipeline = Pipeline("twice")
    pipeline.add(same, after=pipeline.source("in"), name="first")
    pipeline.add(same, after="first", name="second")
    with pytest.raises(InvalidTopologyError, match="'same' runs in first, second: say which"):
        pipeline.connect(same, "third")


def test_a_function_of_another_pipeline_is_unknown():
    with pytest.raises(InvalidTopologyError, match="the function 'same' is not in it"):
        Pipeline("empty").connect("in", same)


def line(**settings):
    pipeline = Pipeline("line")
    pipeline.add(same, after=pipeline.source("in"), **settings)
    return pipeline


def cyclic():
    pipeline = line(name="a")
    pipeline.add(same, after="a", name="b")
    pipeline.add(same, after="b", name="c")
    pipeline.connect("c", "b")
    return pipeline


def unreachable():
    pipeline = line(name="a")
    pipeline.add(same, name="island")
    return pipeline


def without_source():
    pipeline = Pipeline("dry")
    pipeline.add(same, name="a")
    return pipeline


def without_operator():
    pipeline = Pipeline("bare")
    pipeline.source("in")
    return pipeline


def with_idle_source():
    pipeline = line(name="a")
    pipeline.source("spare")
    return pipeline


def with_edge(origin, target, **how):
    pipeline = line(name="a")
    pipeline.connect(origin, target, **how)
    return pipeline


def with_too_large_shares():
    pipeline = line(name="a")
    pipeline.add(same, after="a", name="b", share=0.7)
    pipeline.add(same, after="a", name="c", share=0.6)
    return pipeline


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (cyclic, "pipeline 'line' has a cycle: b -> c -> b"),
        (unreachable, "no source leads to island"),
        (without_source, "pipeline 'dry' has no source: add one with pipeline.source"),
        (without_operator, "pipeline 'bare' has no operator"),
        (with_idle_source, "nothing reads from spare"),
        (lambda: line(name="in"), "declares more than once: in"),
        (lambda: with_edge("a", "b"), "edge a -> b: unknown name 'b', not in a, in"),
        (lambda: with_edge("a", "in"), "edge a -> in: a source takes no input"),
        (lambda: with_edge("in", "a"), "declares an edge more than once: in -> a"),
        (lambda: with_edge("a", "a"), "has a cycle: a -> a"),
        (lambda: with_edge("in", "a", share=1.5), r"share=1.5 is not in \(0, 1\]"),
        (lambda: with_edge("in", "a", share=0.5, when=bool), "either when=... or share=..."),
        (with_too_large_shares, "the edges from 'a' add up to 1.3, above 1"),
        (lambda: line(name="a b"), "operator name 'a b': start with a letter"),
        (lambda: line(pool="4"), "operator 'same': pool='4' must be a whole number"),
        (lambda: line(lanes=8.0), "operator 'same': lanes=8.0 must be a whole number"),
        (lambda: line(pool=2, minimum=3), "operator 'same': pool=2 is below minimum=3"),
        (lambda: line(minimum=0), "at least one replica must stay active"),
        (lambda: line(grouping="key"), "needs a column: name it with key="),
        (lambda: line(key="user"), "key='user' has no effect with the grouping 'next-free'"),
        (lambda: line(execution_time=0.0), "execution_time=0.0 must be a positive number"),
        (lambda: line(timeout="5s"), "timeout='5s' must be a positive number of seconds"),
        (lambda: with_edge("in", "a", when=3), "when=3 must be a function of a batch"),
        (lambda: with_edge("in", "a", share="half"), r"share='half' is not in \(0, 1\]"),
        (lambda: line(teardown=list.clear), "a teardown needs a setup"),
    ],
)
def test_what_cannot_run_is_refused_by_name(declare, message):
    with pytest.raises(InvalidTopologyError, match=message):
        declare().topology()


def test_an_unknown_grouping_suggests_the_right_one():
    with pytest.raises(UnknownNameError, match="did you mean 'load-aware'"):
        line(grouping="loadaware")


def test_a_function_must_be_callable():
    with pytest.raises(InvalidTopologyError, match="its function must be callable, not 3"):
        Pipeline().add(3, name="three")  # type: ignore[type-var]


def test_what_an_operator_gives_must_be_what_the_next_one_takes():
    def declared(**gives):
        pipeline = Pipeline("columns")
        pipeline.add(len, after=pipeline.source("in"), name="parse", **gives)
        pipeline.add(len, after="parse", name="count", takes=("text",), grouping="key", key="user")
        return pipeline

    declared().topology()
    declared(gives=("user", "text", "id")).topology()
    with pytest.raises(
        InvalidTopologyError,
        match="'count' needs 'user', but events from 'parse' have only the columns: text, id",
    ):
        declared(gives=("text", "id")).topology()
    with pytest.raises(InvalidTopologyError, match=r"needs 'text', 'user', .* columns: none"):
        declared(gives=()).topology()


def test_the_decorator_works_without_parentheses():
    pipeline = Pipeline("words")
    lines = pipeline.source("lines")

    @pipeline.operator
    def split(batch):
        return batch

    pipeline.connect(lines, split)
    assert pipeline.topology().order == ("lines", "split")


def test_a_misspelt_argument_names_the_nearest_one():
    pipeline = Pipeline("words")
    lines = pipeline.source("lines")
    with pytest.raises(UnknownNameError, match="'pol': did you mean 'pool'"):
        pipeline.add(len, after=lines, pol=4)


def test_every_argument_of_an_operator_is_documented():
    for argument in ARGUMENTS:
        assert f" {argument}: " in Pipeline.operator.__doc__


def test_an_object_is_named_after_its_class():
    class Model:
        def __call__(self, batch):
            return batch

    pipeline = Pipeline("models")
    pipeline.add(Model(), after=pipeline.source("lines"))
    assert list(pipeline.topology().by_name) == ["Model"]
