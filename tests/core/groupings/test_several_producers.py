"""What groupings do when several producers share the replicas, and reports are late."""

import numpy as np
import pytest

from core.groupings.producers import play
from elastream.core.groupings.algorithm_1 import Algorithm1
from elastream.core.groupings.load_aware import LoadAware
from elastream.core.groupings.osg import Osg
from elastream.core.groupings.osg_published import OsgPublished
from elastream.core.groupings.shuffle import Shuffle

LATE = pytest.mark.parametrize("delay", [0.0, 1.0, 3.0])
OSG = Osg(epsilon=0.2, delta=0.2)
"""Smaller sketches, which are quicker to make."""
SENSITIVE = np.random.default_rng(0).permutation(np.linspace(1, 64, 256)) * 1e-3
EQUAL = {"load": 0.85, "jitter": 0.5, "duration": 20.0}
ONE_SLOW = {"load": 0.5, "slowness": (1.0, 1.0, 3.0, 1.0), "duration": 15.0}


@LATE
@pytest.mark.parametrize("grouping", [LoadAware(), OSG])
def test_on_equal_replicas_it_is_as_good_as_shuffle(grouping, delay):
    shuffled = play(Shuffle(), **EQUAL).mean
    assert play(grouping, delay=delay, **EQUAL).mean < 1.1 * shuffled


@LATE
def test_load_aware_spares_a_slow_replica(delay):
    shuffled = play(Shuffle(), **ONE_SLOW).after(8).p99
    assert play(LoadAware(), delay=delay, **ONE_SLOW).after(8).p99 < 0.01 * shuffled


def test_it_spares_one_that_shuffle_just_keeps_up_with():
    mild = ONE_SLOW | {"load": 0.3}
    ours, shuffled = (play(of, **mild).after(8).p99 for of in (LoadAware(), Shuffle()))
    assert ours < 0.5 * shuffled


@LATE
@pytest.mark.parametrize("grouping", [LoadAware(), OSG])
def test_a_backlog_at_one_replica_is_made_up_for_without_another_one(grouping, delay):
    loaded = {"load": 0.8, "duration": 25.0, "backlog": 4.0, "producers": 8}
    assert play(grouping, delay=delay, **loaded).after(15).p99 < 0.1
    assert play(Shuffle(), **loaded).after(15).p99 > 0.5


def test_algorithm_1_as_printed_herds():
    shuffled, printed = play(Shuffle(), **EQUAL).mean, play(Algorithm1(), delay=1.0, **EQUAL).mean
    assert printed > 10 * shuffled


def test_osg_has_less_than_seven_tenths_of_the_mean_where_costs_depend_on_values():
    busy = {"producers": 1, "costs": SENSITIVE, "load": 0.95, "duration": 60.0}
    ours, shuffled = (play(of, **busy).after(15).mean for of in (Osg(), Shuffle()))
    assert ours < 0.7 * shuffled


def test_with_several_producers_osg_does_no_harm_and_as_published_it_herds():
    busy = {"producers": 4, "costs": SENSITIVE, "load": 0.9, "duration": 60.0}
    shuffled = play(Shuffle(), **busy).after(40).mean
    assert play(Osg(), **busy).after(40).mean < 1.05 * shuffled
    assert play(OsgPublished(), **busy).after(40).mean > 3 * shuffled
