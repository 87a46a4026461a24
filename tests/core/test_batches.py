import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.batches import Batch, BatchModel, fitted

FIXED, PER_TASK, PER_ROW = 0.6, 0.05, 0.004


def batch(rows, cores, tasks=16, noise=1.0, **changes):
    task = (PER_TASK + PER_ROW * rows / tasks) * noise
    seconds = FIXED + math.ceil(tasks / cores) * task
    return Batch(rows, changes.pop("seconds", seconds), tasks, cores, tasks * task, 0.3, **changes)


def close_to_the_truth(model, share=0.1):
    for rows in (100, 1000, 4000):
        for cores in (1, 3, 8, 16):
            truth = batch(rows, cores).seconds
            assert model.seconds(rows, cores) == pytest.approx(truth, rel=share)


def noisy(count, seed=0):
    random = np.random.default_rng(seed)
    rows, cores = random.uniform(200, 4000, count), random.integers(1, 9, count)
    noise = random.gamma(100, 0.01, count)
    return [batch(r, int(c), noise=n) for r, c, n in zip(rows, cores, noise, strict=True)]


def test_the_truth_is_found_from_a_few_batches_of_different_sizes():
    close_to_the_truth(fitted([batch(rows, 4) for rows in (400, 900, 2000)]), 1e-6)


def test_noise_and_cores_that_come_and_go_do_no_harm():
    close_to_the_truth(fitted(noisy(20)))


def test_a_few_batches_that_are_far_too_slow_do_no_harm():
    seen = noisy(20)
    for place in (0, 1, 7, 12):
        slow = seen[place]
        seen[place] = Batch(slow.rows, slow.seconds * 8, 16, slow.cores, slow.work * 8)
    close_to_the_truth(fitted(seen), 0.15)


def test_batches_during_which_executors_came_tell_only_what_tasks_take():
    seen = [
        Batch(of.rows, of.seconds / 2, of.tasks, of.cores, of.work, of.overhead, steady=False)
        for of in noisy(10)
    ]
    close_to_the_truth(fitted([*seen, batch(1000, 4), batch(2000, 4), batch(3000, 4)]))


def test_when_all_batches_are_alike_a_larger_one_is_rather_over_estimated():
    model = fitted([batch(1000, 4)] * 5)
    assert model.seconds(1000, 4) == pytest.approx(batch(1000, 4).seconds)
    truth = batch(3000, 4).seconds
    assert truth <= model.seconds(3000, 4) <= 1.3 * truth


def test_when_rows_become_dearer_the_model_follows_within_four_batches():
    dear = [
        Batch(of.rows, of.seconds * 2, of.tasks, of.cores, of.work * 2) for of in noisy(4, seed=1)
    ]
    model = fitted([*noisy(20), *dear])
    assert model.seconds(2000, 4) == pytest.approx(2 * batch(2000, 4).seconds, rel=0.15)
    assert model.trust >= 0.5


def test_it_says_how_far_it_is_to_be_trusted():
    assert fitted([]) is None
    assert fitted([batch(1000, 4)]) is None
    assert fitted(noisy(20)).trust == 1.0
    random = np.random.default_rng(0)
    wild = [batch(1000, 4, seconds=float(s)) for s in random.lognormal(1.0, 1.5, 20)]
    assert fitted(wild).trust < 0.5


def test_batches_without_rows_tell_nothing():
    assert fitted([batch(0, 4)] * 5) is None


models = st.builds(
    BatchModel,
    fixed=st.floats(0, 5),
    per_task=st.floats(0, 1),
    per_row=st.floats(0, 0.1),
    tasks=st.integers(1, 200),
    upper=st.floats(1, 2),
)


@given(model=models, rows=st.floats(0, 1e6), within=st.floats(0.1, 100))
def test_the_fewest_cores_that_end_in_time_are_found(model, rows, within):
    cores = model.cores_for(rows, within)
    assert 1 <= cores <= model.tasks
    seconds = model.seconds(rows, cores)
    in_time = seconds * model.upper <= within * (1 + 1e-6)
    # Where none suffice, more would hardly help.
    assert in_time or seconds <= 1.1 * model.seconds(rows, model.tasks) * (1 + 1e-6)
    if cores > 1:
        assert model.seconds(rows, cores - 1) * model.upper > within * (1 - 1e-6)


@given(model=models, rows=st.floats(0, 1e6), cores=st.integers(1, 300))
def test_more_cores_never_take_longer_and_more_than_tasks_never_less(model, rows, cores):
    assert model.seconds(rows, cores + 1) <= model.seconds(rows, cores)
    assert model.seconds(rows, model.tasks + cores) == model.seconds(rows, model.tasks)


def test_one_small_batch_does_not_cap_the_cores_of_the_next():
    usual = [batch(rows, 4) for rows in (1000, 2000, 3000, 4000, 2500)]
    assert fitted([*usual, batch(50, 4, tasks=1)]).tasks == 16
    assert fitted([*usual, *[batch(1000, 4, tasks=8)] * 3]).tasks == 8


def test_where_the_fixed_part_takes_too_long_cores_that_do_not_help_are_not_asked_for():
    slow = BatchModel(fixed=6.0, per_task=0.0, per_row=0.01, tasks=16)
    assert not slow.attainable(160, within=3.0)
    assert slow.cores_for(160, within=3.0) == 3
    assert slow.seconds(160, 3) <= 1.1 * slow.seconds(160, 16)
    # With more rows, more cores do help.
    assert slow.cores_for(16_000, within=3.0) == 16
