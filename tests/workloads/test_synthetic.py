import numpy as np
import pytest

from elastream.core.chains import Chains
from elastream.errors import ElastreamError
from elastream.workloads import APPLICATIONS, TRACES
from elastream.workloads.choice import chosen_trace


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_is_finite_positive_and_the_same_for_the_same_seed(name):
    trace = TRACES[name](seed=5)
    assert len(trace.times) == len(trace.values) >= 600
    assert np.all(np.isfinite(trace.values))
    assert trace.values.min() >= 0
    np.testing.assert_array_equal(trace.values, TRACES[name](seed=5).values)


@pytest.mark.parametrize("name", sorted(set(TRACES) - {"step", "square", "ramp"}))
def test_another_seed_is_another_trace_of_the_same_kind(name):
    first, second = TRACES[name](seed=1).values, TRACES[name](seed=2).values
    assert not np.array_equal(first, second)
    assert first.mean() == pytest.approx(second.mean(), rel=0.4)


@pytest.mark.parametrize("seed", range(5))
def test_spiky_has_the_scale_of_the_papers_trace(seed):
    trace = TRACES["spiky"](seed=seed)
    assert len(trace.values) == 1301
    assert trace.rates.mean() == pytest.approx(2300, rel=0.02)
    assert trace.rates.max() == pytest.approx(5750, rel=0.02)
    assert trace.rates.min() < 600


def test_a_trace_is_chosen_by_name_or_by_file(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("time,value\n0,1\n1,2\n")
    assert chosen_trace(str(file)).values.tolist() == [1, 2]
    assert len(chosen_trace("ramp").values) == 600
    with pytest.raises(ElastreamError, match="spikey: there is no such file, and no trace"):
        chosen_trace("spikey")


@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_can_be_simulated(name):
    application = APPLICATIONS[name](execution_time=0.002, pool=5)
    for operator in application.topology.operators:
        assert operator.pool == 5
        assert application.behaviour.of(application.topology, operator.name).time.mean > 0


@pytest.mark.parametrize("name", APPLICATIONS)
def test_the_papers_applications_are_not_chained_however_little_their_work(name):
    topology = APPLICATIONS[name]().topology
    costless = dict.fromkeys(topology.by_name, 0.0)
    assert not Chains.planned(topology, costless).chained


def test_functions_can_be_put_into_an_application():
    application = APPLICATIONS["twitter"](functions={"sentiment": len})
    assert application.topology.by_name["sentiment"].function is len
    assert application.topology.by_name["store"].function([1]) == [1]
