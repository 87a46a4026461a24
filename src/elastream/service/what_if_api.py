"""The path that replays what was recorded with another choice."""

from __future__ import annotations

from threading import Lock
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from elastream.service import control_messages as messages
from elastream.service.control_api import CHANGE_REFUSALS, RunningPipeline
from elastream.service.what_if import Recording


def add_what_if(app: FastAPI, running: RunningPipeline) -> None:
    """Add it; one replay runs at a time, on a thread."""
    live, steering, busy = running.live, running.steering, Lock()

    @app.post("/api/what-if", response_model=messages.Comparison, responses=CHANGE_REFUSALS)
    def what_if(body: messages.WhatIf) -> Any:
        """Replay the recorded input in the simulator, with another policy and predictor."""
        if not busy.acquire(blocking=False):
            detail = "another replay is under way: wait until it is done"
            return JSONResponse({"detail": detail}, 429, {"Retry-After": "1"})
        try:
            chosen = steering.chosen(body.policy, body.predictor)
            recording = Recording(
                live.topology, live.intervals(), steering.settings, running.look_back
            )
            return recording.compare(*chosen)
        finally:
            busy.release()
