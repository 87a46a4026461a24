"""What a command writes to stderr while it runs: lines for people, or JSON for programs."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from elastream.errors import ElastreamError

log = logging.getLogger("elastream")


class LogFormat(StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


LogFormatOption = Annotated[
    LogFormat, typer.Option("--log-format", help="The format of log lines on stderr.")
]


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"elastream: {super().format(record)}"


class _Json(logging.Formatter):
    """One object a line: time, level, logger, message, and further facts."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told)


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(self.format(record), err=True)


_handler = _Stderr()


def set_up_logs(wanted: LogFormat) -> None:
    """Write all log messages in this format."""
    _write(logging.getLogger(), wanted)


def set_up_own_logs(wanted: LogFormat) -> None:
    """Write our messages in this format, beside a program that logs in its own way."""
    _write(log, wanted)
    log.propagate = False


def _write(logger: logging.Logger, wanted: LogFormat) -> None:
    _handler.setFormatter(_Json() if wanted is LogFormat.JSON else _Lines())
    logger.addHandler(_handler)
    log.setLevel(logging.INFO)


def for_programs() -> bool:
    """Whether stderr is JSON, so that nothing else may be drawn there."""
    return isinstance(_handler.formatter, _Json)


def report(message: str, **facts: object) -> None:
    """Log a message; facts are for programs only."""
    log.info("%s", message, extra={"facts": facts})


def report_mistake(error: ElastreamError) -> None:
    """Log what a user has to mend."""
    if for_programs():
        log.error("%s", error)
    else:
        typer.echo(f"elastream: {error}", err=True)
