"""From the names that a user types to models and policies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elastream.control.run import inputs_per_interval
from elastream.control.steering import LONGEST_TD
from elastream.core.topology import Topology
from elastream.errors import InvalidInputError
from elastream.policies import POLICIES, Policy
from elastream.policies.guards import Guard
from elastream.policies.rlearning import RLearning
from elastream.policies.slo import Slo
from elastream.predictors import Predictor
from elastream.predictors.cards import CARDS
from elastream.running.choices import SHORTEST_TD, guard, model_named
from elastream.workloads.traces import Trace


def chosen_models(names: str, trained: Sequence[str] = (), seed: int = 0) -> list[Predictor]:
    """The models in a list with commas; `all` is every one that is installed and trained.

    Those that draw at random draw by the seed.

    >>> [model.name for model in chosen_models("lr,fft")]
    ['lr', 'fft']
    """
    files = trained_files(trained)
    if names == "all":
        return [
            model_named(name, files, seed)
            for name, card in CARDS.items()
            if card.installed and (name in files or not card.trained)
        ]
    return [model_named(name.strip(), files, seed) for name in names.split(",")]


def chosen_model(name: str, trained: Sequence[str] = (), seed: int = 0) -> Predictor:
    """The one model of that name; a list is refused."""
    if name == "all" or "," in name:
        raise InvalidInputError(f"{name}: name one model; 'elastream backtest' compares several")
    return chosen_models(name, trained, seed)[0]


def trained_files(options: Sequence[str]) -> dict[str, Path]:
    """The file of every trained model, from what the user gave as NAME=FILE."""
    return dict(_name_and_file(option) for option in options)


def _name_and_file(option: str) -> tuple[str, Path]:
    name, equals, file = option.partition("=")
    if not (equals and file and name in CARDS and CARDS[name].trained):
        recurrent = ", ".join(name for name, card in CARDS.items() if card.trained)
        raise InvalidInputError(
            f"--trained {option}: must be NAME=FILE, where NAME is one of {recurrent}"
        )
    return name, Path(file)


def chosen_policy(
    name: str,
    trace: Trace,
    td: float,
    replicas: int | None = None,
    table: Path | None = None,
    objective_ms: float | None = None,
    quantile: float | None = None,
) -> Policy:
    """The policy of that name, with the arguments that it needs.

    Args:
        name: What the user typed.
        trace: The input, which is the future that `oracle` knows.
        td: The length of an interval, in seconds.
        replicas: For `static`: how many of each operator.
        table: For `rlearning`: what `elastream learn` has learned; nothing yet unless given.
        objective_ms: For `slo`: the latency to keep, in milliseconds.
        quantile: For `slo`: for which share of the events.
    """
    if replicas is not None and name != "static":
        raise InvalidInputError(f"--replicas {replicas}: only the policy static takes it")
    if table is not None and name != "rlearning":
        raise InvalidInputError(f"--table {table}: only the policy rlearning takes it")
    if name == "slo":
        return _slo(objective_ms, quantile)
    for option, value in (("--objective-ms", objective_ms), ("--quantile", quantile)):
        if value is not None:
            raise InvalidInputError(f"{option} {value:g}: only the policy slo takes it")
    if name == "static":
        if replicas is None:
            raise InvalidInputError("the policy static needs --replicas: how many of each operator")
        return POLICIES[name](replicas=replicas)
    if name == "oracle":
        return POLICIES[name](future=inputs_per_interval(trace, td))
    return POLICIES[name]() if table is None else RLearning.load(table)


def td_of(policy: str, td: float | None) -> float:
    """The length of an interval: as given, or the default of the policy.

    >>> td_of("slo", None), td_of("pa-sps", None), td_of("pa-sps", 5.0)
    (0.25, 30.0, 5.0)
    """
    if td is not None:
        return td
    return Slo.td if policy == "slo" else Policy.td


def check_loop(td: float, look_back: int, longest: float = LONGEST_TD, why: str = "") -> None:
    """Refuse what no control loop can run with, before anything is started.

    Args:
        td: The length of an interval, in seconds.
        look_back: How many samples the predictor sees.
        longest: The longest interval that makes sense, ...
        why: ... and why that is so.
    """
    if not SHORTEST_TD <= td <= longest:
        raise InvalidInputError(
            f"--td {td:g}: it must be between {SHORTEST_TD:g} s and {longest:g} s{why}"
        )
    if look_back < 2:
        raise InvalidInputError(f"--look-back {look_back}: a forecast needs at least 2 samples")


def check_replicas(topology: Topology, replicas: int | None) -> None:
    """Refuse more replicas than a pool holds."""
    for operator in topology.operators:
        if replicas is not None and replicas > operator.pool:
            raise InvalidInputError(
                f"--replicas {replicas}: the pool of {operator.name!r} holds {operator.pool}; "
                "give a larger --pool"
            )


def _slo(objective_ms: float | None, quantile: float | None) -> Policy:
    given: dict[str, float] = {}
    if objective_ms is not None:
        if not 0 < objective_ms < float("inf"):
            raise InvalidInputError(
                f"--objective-ms {objective_ms:g}: it must be above 0, and finite"
            )
        given["objective"] = objective_ms / 1000
    if quantile is not None:
        given["quantile"] = quantile
    return Slo(**given)


def guard_from(option: str) -> Guard:
    """A guard as a user types it: NAME, or NAME:ARGUMENT=NUMBER,...

    >>> guard_from("cooldown:up=10,down=60")
    Cooldown(up=10, down=60)
    """
    name, _, given = option.partition(":")
    arguments: dict[str, float] = {}
    for part in filter(None, given.split(",")):
        argument, equals, value = part.partition("=")
        try:
            number = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise InvalidInputError(f"--guard {option}: write NAME, or NAME:ARGUMENT=NUMBER,...")
        arguments[argument.strip()] = int(number) if value.strip().isdigit() else number
    return guard(name, **arguments)


def executors_from(text: str) -> tuple[int, int]:
    """The minimum and the maximum of executors.

    >>> executors_from("1:8")
    (1, 8)
    """
    least, colon, most = text.partition(":")
    if not (colon and least.isdigit() and most.isdigit() and 1 <= int(least) <= int(most)):
        raise InvalidInputError(
            f"--executors {text}: give the fewest and the most, as 1:8, the fewest at least 1"
        )
    return int(least), int(most)
