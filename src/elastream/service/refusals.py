"""What a service answers when a request fails: never a stack trace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from elastream.errors import (
    InvalidInputError,
    InvalidSettingError,
    NotReadyError,
    RunOverError,
    UnknownNameError,
)

Handler = Callable[[Request, Exception], Awaitable[JSONResponse]]


def add_refusals(app: FastAPI) -> None:
    """Give every kind of error its status, and a reason that helps."""
    app.add_exception_handler(RequestValidationError, _name_the_fields)
    app.add_exception_handler(InvalidInputError, _name_the_setting)
    app.add_exception_handler(UnknownNameError, _refusal(404))
    app.add_exception_handler(RunOverError, _refusal(409))
    app.add_exception_handler(NotReadyError, _refusal(409))
    app.add_exception_handler(Exception, _own_fault)


def _refusal(status: int) -> Handler:
    async def refuse(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, status_code=status)

    return refuse


async def _name_the_setting(_: Request, error: Exception) -> JSONResponse:
    problem = {"field": "body", "problem": str(error)}
    if isinstance(error, InvalidSettingError):
        problem = {"field": error.field, "problem": error.problem}
    return JSONResponse({"detail": [problem]}, status_code=422)


async def _own_fault(_: Request, error: Exception) -> JSONResponse:
    """The server logs what happened; a stranger need not know."""
    return JSONResponse({"detail": "the service failed: its log says why"}, status_code=500)


async def _name_the_fields(_: Request, error: Exception) -> JSONResponse:
    """Say what is wrong with which field, without echoing it: it may not even be valid JSON."""
    assert isinstance(error, RequestValidationError)
    problems = [
        {"field": _field(found["loc"]), "problem": found["msg"]} for found in error.errors()
    ]
    too_long = any(found["type"] == "too_long" for found in error.errors())
    return JSONResponse({"detail": problems}, status_code=413 if too_long else 422)


def _field(location: tuple[str | int, ...]) -> str:
    """The place as one writes it: `samples[3]`."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location[1:])
    return path.lstrip(".") or str(location[0])
