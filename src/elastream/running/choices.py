"""Policies, predictors and guards: by name, by name with arguments, or as objects."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from elastream.catalog import Catalog
from elastream.control import Choices
from elastream.errors import InvalidInputError, UnknownNameError
from elastream.policies import POLICIES, Policy
from elastream.policies.guards import GUARDS, Guard
from elastream.predictors import PREDICTORS, Predictor
from elastream.predictors.cards import CARDS
from elastream.predictors.fallback import WithFallback
from elastream.predictors.remote import RemotePredictor

T = TypeVar("T")

NEED_MORE = {"static", "oracle"}
"""Policies that a running pipeline cannot be switched to by their name alone."""
SHORTEST_TD = 0.1
"""A replica takes about as long to come, and a cycle a tenth of it, in seconds."""


def policy(name: str, **arguments: Any) -> Policy:
    """A policy by its name (see `elastream policies`), with its arguments.

    Examples:
        >>> policy("static", replicas=4)
        Static(replicas=4)
    """
    return _made(POLICIES, name, arguments)


def predictor(name: str, **arguments: Any) -> Predictor:
    """A predictor by its name (see `elastream models`); `NAME@URL` asks a service.

    Examples:
        >>> predictor("fft", frequencies=5).name
        'fft'
    """
    return _made(PREDICTORS, name, arguments) if arguments else model_named(name, {})


def guard(name: str, **arguments: Any) -> Guard:
    """A guard by its name, with its limits.

    Examples:
        >>> guard("cooldown", up=10, down=60)
        Cooldown(up=10, down=60)
        >>> guard("cooldown", upp=10)
        Traceback (most recent call last):
        elastream.errors.UnknownNameError: unknown argument of the guard 'cooldown' 'upp': \
did you mean 'up'? There are: down, up
    """
    return _made(GUARDS, name, arguments)


def chosen_policy(given: Policy | str) -> Policy:
    """A policy as it is, or by its name."""
    found = policy(given) if isinstance(given, str) else given
    return found if isinstance(found, Policy) else _refused("policy", given)


def chosen_predictor(given: Predictor | str) -> Predictor:
    """A predictor as it is, or by its name."""
    found = predictor(given) if isinstance(given, str) else given
    return found if isinstance(found, Predictor) else _refused("predictor", given)


def chosen_guards(given: Iterable[Guard | str]) -> tuple[Guard, ...]:
    """Guards as they are, or by their names."""
    found = [guard(each) if isinstance(each, str) else each for each in given]
    return tuple(of if isinstance(of, Guard) else _refused("guard", of) for of in found)


def check_times(**times: float | None) -> None:
    """Refuse a number of seconds that is not above 0.

    >>> check_times(td=0.5, sample=0)
    Traceback (most recent call last):
    elastream.errors.InvalidInputError: sample=0: it must be above 0, and finite
    """
    for name, value in times.items():
        if value is not None and not 0 < value < math.inf:
            raise InvalidInputError(f"{name}={value:g}: it must be above 0, and finite")


def model_named(name: str, files: Mapping[str, Path], seed: int = 0) -> Predictor:
    """One model; a recurrent one is made from its trained file, one at a URL asks a service.

    >>> model_named("fft@http://127.0.0.1:8888", {}).model
    'fft'
    """
    model, at, url = name.partition("@")
    if at:
        return RemotePredictor(url, model, token=os.environ.get("ELASTREAM_TOKEN"))
    if name in files:
        return PREDICTORS[name](path=files[name])
    if name in CARDS and CARDS[name].trained:
        raise InvalidInputError(
            f"the predictor {name!r} needs a trained model: make one with "
            f"'elastream train --model {name}' and name it with --trained {name}=FILE, or with "
            f"elastream.predictor({name!r}, path=FILE)"
        )
    factory = PREDICTORS[name]
    return factory(seed=seed) if "seed" in signature(factory).parameters else factory()


class Models(Mapping[str, Predictor]):
    """Every available model, each loaded when it is first asked for.

    Args:
        first: The one that a run starts with.
        files: The files of trained models.
    """

    def __init__(self, first: Predictor, files: Mapping[str, Path]) -> None:
        self._files = files
        self._loaded = {first.name: first}
        self._names = [
            name
            for name, card in CARDS.items()
            if name in self._loaded
            or (card.installed and (name in self._files or not card.trained))
        ]
        self._names += self._loaded.keys() - set(self._names)

    def __getitem__(self, name: str) -> Predictor:
        if name not in self._loaded:
            self._loaded[name] = model_named(name, self._files)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def in_time(model: Predictor, td: float) -> Predictor:
    """The same model with a fallback: a forecast that comes after its interval is useless."""
    return WithFallback(model, timeout=td / 2)


def steering_choices(
    first: Policy,
    models: Mapping[str, Predictor],
    within: Callable[[Predictor, float], Predictor] = lambda model, td: model,
    shortest_td: float = SHORTEST_TD,
) -> Choices:
    """What people can switch a run to.

    Args:
        first: The policy that it starts with.
        models: The predictors.
        within: Limits a predictor to the time that an interval of this length leaves it.
        shortest_td: The shortest interval that makes sense, in seconds.
    """
    policies: dict[str, Callable[[], Policy]] = {
        name: POLICIES[name] for name in POLICIES if name not in NEED_MORE
    }
    policies[first.name] = lambda: first
    predictors = {name: lambda td, name=name: within(models[name], td) for name in models}
    return Choices(policies, predictors, shortest_td, within)


def _made(catalog: Catalog[T], name: str, arguments: Mapping[str, Any]) -> T:
    factory = catalog[name]
    known = signature(factory).parameters
    for argument in arguments:
        if argument not in known:
            raise UnknownNameError(f"argument of the {catalog.kind} {name!r}", argument, known)
    try:
        return factory(**arguments)
    except TypeError as error:
        takes = ", ".join(known) or "nothing"
        raise InvalidInputError(f"the {catalog.kind} {name!r}: {error}; it takes {takes}") from None


def _refused(kind: str, given: object) -> NoReturn:
    raise InvalidInputError(
        f"{kind}={given!r}: give a name, or an object, such as elastream.{kind}(...)"
    )
