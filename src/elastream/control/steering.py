"""Steering: people change how a loop runs while it runs, from any thread.

A change is checked, made, and recorded with who made it and when; then the loop is woken. An
invalid value is refused with the name of its field, and nothing changes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

from elastream.control.settings import Choices, Course, Limits, Settings, Steered
from elastream.core.topology import Operator
from elastream.engines.base import Engine
from elastream.errors import (
    ElastreamError,
    InvalidSettingError,
    RunOverError,
    UnknownNameError,
)
from elastream.policies.base import Policy
from elastream.predictors.base import Predictor

log = logging.getLogger(__name__)

LONGEST_TD = 86_400.0
_SWITCHES = {
    "paused": {True: "paused", False: "resumed"},
    "advice_only": {True: "advice only: plans are not applied", False: "plans are applied again"},
}


class Steering:
    """Holds the settings of a loop, and lets people change them.

    Args:
        engine: Whose loop it is.
        course: The settings to start with.
        choices: What people can switch it to.
        record: Called with every change.
        time_of_day: Seconds since 1970.
    """

    def __init__(
        self,
        engine: Engine,
        course: Course,
        choices: Choices,
        record: Callable[[Steered], object],
        time_of_day: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._course = course
        self.choices = choices
        self._record = record
        self._time_of_day = time_of_day
        self._lock = Lock()
        self._over = False
        check_td(course.settings.td, choices.shortest_td)

    @property
    def course(self) -> Course:
        """The current settings and what they stand for; an immutable value."""
        return self._course

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._course.settings

    def change(self, who: str, wanted: Mapping[str, Any]) -> Settings:
        """Set any of policy, predictor, td, advice_only and paused: all of them or none.

        A policy or a predictor is a name, or an object, which becomes the choice of its name.
        Unless somebody has chosen an interval, it changes to the default of the policy.
        """
        with self._lock:
            now, choices = self._course, self.choices
            objects = {name: value for name, value in wanted.items() if _is_model(name, value)}
            for given in objects.values():
                choices = choices.including(given)
            names = {name: given.name for name, given in objects.items()}
            settings = replace(now.settings, **{**wanted, **names})
            policy, predictor = now.policy, now.predictor
            if "policy" in objects or settings.policy != now.settings.policy:
                policy = self._made("policy", choices.policies, settings.policy)
                if "td" not in wanted:
                    settings = replace(settings, td=_td_under(policy, now))
            check_td(settings.td, choices.shortest_td)
            if "predictor" in objects or (settings.predictor, settings.td) != (
                now.settings.predictor,
                now.settings.td,
            ):
                predictor = self._predictor(settings, choices)
            told = [_change_of(name, now.settings, settings) for name in _changed(now, settings)]
            told += [f"{name}: {given!r}" for name, given in objects.items()]
            self.choices = choices
            return self._take(who, "; ".join(told), Course(settings, policy, predictor))

    def limit(self, who: str, operator: str, limits: Limits) -> Settings:
        """Limit the replicas of the operator, from the next cycle on."""
        declared = self._operator(operator)
        _check_between("minimum", limits.minimum, declared.minimum, declared.pool)
        _check_between("maximum", limits.maximum, limits.minimum, declared.pool)
        what = f"{operator}: at least {limits.minimum} and at most {limits.maximum} replicas"
        return self._amend(who, what, "limits", operator, limits)

    def release_limits(self, who: str, operator: str) -> Settings:
        """Give the operator back the limits that it was declared with."""
        self._operator(operator)
        return self._amend(who, f"{operator}: limits as declared", "limits", operator, None)

    def set_replicas(self, who: str, operator: str, replicas: int) -> Settings:
        """Set the replicas of the operator at once, whatever the policy says, until released."""
        declared = self._operator(operator)
        _check_between("replicas", replicas, declared.minimum, declared.pool)
        return self._amend(
            who, f"{operator}: {replicas} replicas by hand", "by_hand", operator, replicas
        )

    def release_replicas(self, who: str, operator: str) -> Settings:
        """Leave the operator to the policy again."""
        self._operator(operator)
        return self._amend(who, f"{operator}: left to the policy", "by_hand", operator, None)

    def chosen(self, policy: str, predictor: str) -> Course:
        """What switching to these names would lead to; nothing is changed."""
        now = self._course
        found: Policy = self._made("policy", self.choices.policies, policy)
        td = _td_under(found, now)
        model = self._made("predictor", self.choices.predictors, predictor, td)
        settings = replace(now.settings, policy=policy, predictor=predictor, td=td)
        return Course(settings, found, model)

    def stop(self, who: str, drain: bool = True) -> Settings:
        """End the run: after the events inside are finished, or at once."""
        with self._lock:
            settings = replace(self.settings, stopping=True, drain=drain)
            what = "drain and stop" if drain else "stop without draining"
            return self._take(who, what, replace(self._course, settings=settings))

    def end(self) -> None:
        """The run is over: from now on every change is refused."""
        with self._lock:
            self._over = True

    def _amend(self, who: str, what: str, field: str, operator: str, value: object) -> Settings:
        """Set one entry of a mapping; None removes it."""
        with self._lock:
            entries = {**getattr(self.settings, field), operator: value}
            if value is None:
                del entries[operator]
            changed: dict[str, Any] = {field: entries}
            settings = replace(self.settings, **changed)
            return self._take(who, what, replace(self._course, settings=settings))

    def _take(self, who: str, what: str, course: Course) -> Settings:
        if self._over:
            raise RunOverError("the run is over: nothing can be changed any more")
        if course != self._course:
            revision = self.settings.revision + 1
            course = replace(course, settings=replace(course.settings, revision=revision))
            self._course = course
            now = self._engine.clock.now()
            log.info("%s: %s", who, what)
            try:
                self._record(Steered(now, self._time_of_day(), who, what, course.settings))
            except Exception:  # A full disk must not keep people from steering.
                log.exception("a change by %s could not be recorded: %s", who, what)
            self._engine.clock.wake()
        return course.settings

    def _predictor(self, settings: Settings, choices: Choices) -> Any:
        """The choice of that name, made for this td; if it is not a choice, the current one."""
        if settings.predictor == self.settings.predictor not in choices.predictors:
            return self._course.predictor
        return self._made("predictor", choices.predictors, settings.predictor, settings.td)

    def _made(
        self, field: str, choices: Mapping[str, Callable[..., Any]], name: str, *how: Any
    ) -> Any:
        if name not in choices:
            raise InvalidSettingError(field, str(UnknownNameError(field, name, choices)))
        try:
            return choices[name](*how)
        except ElastreamError as error:
            raise InvalidSettingError(field, str(error)) from None

    def _operator(self, name: str) -> Operator:
        operators = self._engine.topology.by_name
        if name not in operators:
            raise UnknownNameError("operator", name, operators)
        return operators[name]


def check_td(td: float, shortest: float) -> None:
    """Refuse an interval that is shorter than that, or longer than any."""
    if not (0 < td <= LONGEST_TD and td >= shortest):
        least = f"at least {shortest:g} s" if shortest else "above 0"
        raise InvalidSettingError(
            "td", f"{td:g} s: it must be {least}, and at most {LONGEST_TD:g} s"
        )


def _td_under(policy: Policy, now: Course) -> float:
    """The interval with another policy: its default, unless somebody has chosen one."""
    return policy.td if now.settings.td == now.policy.td else now.settings.td


def _is_model(name: str, value: object) -> bool:
    """Whether it is an object instead of a name."""
    kinds: dict[str, type[Any]] = {"policy": Policy, "predictor": Predictor}
    if name not in kinds or isinstance(value, str):
        return False
    if not isinstance(value, kinds[name]):
        raise InvalidSettingError(
            name, f"{value!r}: give a name, or an object such as elastream.{name}(...)"
        )
    return True


def _changed(course: Course, settings: Settings) -> list[str]:
    return [
        name
        for name in ("policy", "predictor", "td", "advice_only", "paused")
        if getattr(course.settings, name) != getattr(settings, name)
    ]


def _change_of(name: str, before: Settings, after: Settings) -> str:
    if name in _SWITCHES:
        return _SWITCHES[name][getattr(after, name)]
    unit = " s" if name == "td" else ""
    return f"{name}: {getattr(before, name)}{unit} -> {getattr(after, name)}{unit}"


def _check_between(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidSettingError(field, f"{value}: it must be {least} to {most}")
