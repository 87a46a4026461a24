"""Cycles, people's changes, settings, health and problems, as the API returns them."""

from __future__ import annotations

from typing import Any

from elastream.control import Cycle, Settings, Steered
from elastream.control.problems import Problems
from elastream.core.health import Health

Entry = dict[str, Any]


def decision_message(entry: Cycle | Steered, number: int) -> Entry:
    """One entry among the decisions; `number` counts the cycles."""
    if isinstance(entry, Steered):
        return {
            "kind": "steering",
            "time": entry.time,
            "at": entry.at,
            "who": entry.who,
            "what": entry.what,
        }
    forecast = entry.forecast
    return {
        "kind": "cycle",
        "number": number,
        "time": entry.time,
        "outcome": entry.outcome.value,
        "note": entry.note,
        "model": forecast.model if forecast else None,
        "forecast": expected_rate(entry),
        "changes": [
            {
                "operator": change.operator,
                "before": change.before,
                "after": change.after,
                "reasons": [str(reason) for reason in change.reasons],
            }
            for change in entry.changes
        ],
    }


def expected_rate(cycle: Cycle) -> float | None:
    """What the next interval is expected to bring, in events per second."""
    if cycle.forecast is None or cycle.stats is None:
        return None
    return float(cycle.forecast.values[0]) / cycle.stats.duration


def health_message(health: Health) -> Entry:
    """The health of the run."""
    return {"state": health.state.value, "why": health.why}


def problems_message(problems: Problems) -> Entry:
    """What has gone wrong since the start: per operator, and by error, most events first."""
    failures = sorted(problems.failures.items(), key=lambda entry: -entry[1])
    return {
        "operators": {
            name: {
                "set_aside": of.set_aside,
                "dropped": of.dropped,
                "restarted": of.restarted,
            }
            for name, of in problems.operators.items()
            if of.set_aside or of.dropped or of.restarted
        },
        "failures": [
            {"operator": operator, "error": error, "events": events}
            for (operator, error), events in failures
        ],
    }


def settings_message(settings: Settings) -> Entry:
    """All settings."""
    return {
        "policy": settings.policy,
        "predictor": settings.predictor,
        "td": settings.td,
        "advice_only": settings.advice_only,
        "paused": settings.paused,
        "stopping": settings.stopping,
        "limits": {
            name: {"minimum": of.minimum, "maximum": of.maximum}
            for name, of in settings.limits.items()
        },
        "by_hand": dict(settings.by_hand),
        "revision": settings.revision,
    }
