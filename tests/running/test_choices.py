import pytest

import elastream
from elastream.cli.choices import guard_from
from elastream.errors import InvalidInputError, UnknownNameError
from elastream.policies.guards import GUARDS
from elastream.policies.guards.limits import TotalCap
from elastream.running.choices import chosen_guards, chosen_policy, chosen_predictor


def test_what_makes_no_events_is_refused_at_once():
    with pytest.raises(InvalidInputError, match=r"replay\(3, ...\): give a function make"):
        elastream.replay(3)


def test_names_and_objects_stand_for_the_same():
    assert chosen_policy("pa-sps") == elastream.policy("pa-sps")
    assert chosen_policy(elastream.policy("static", replicas=3)).replicas == 3
    assert chosen_predictor("lr").name == elastream.predictor("lr").name
    assert chosen_guards(["pause", TotalCap(4)])[1] == elastream.guard("total-cap", most=4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: elastream.policy("pa-spz"), "did you mean 'pa-sps'"),
        (lambda: elastream.policy("static", replica=3), "did you mean 'replicas'"),
        (lambda: elastream.guard("total-cap"), "it takes most"),
        (lambda: elastream.predictor("bigru"), "needs a trained model"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


@pytest.mark.parametrize("choose", [chosen_policy, chosen_predictor])
def test_what_is_neither_a_name_nor_an_object_is_refused(choose):
    with pytest.raises(InvalidInputError, match="give a name, or an object"):
        choose(3)


def test_every_guard_of_the_catalogue_is_there():
    for name in GUARDS:
        assert callable(GUARDS[name])


def test_guards_are_typed_with_their_limits():
    assert guard_from("total-cap:most=4") == TotalCap(4)
    with pytest.raises(InvalidInputError, match="NAME:ARGUMENT=NUMBER"):
        guard_from("total-cap:most")
    with pytest.raises(UnknownNameError, match="cooldown"):
        guard_from("cooldwon:up=3")
