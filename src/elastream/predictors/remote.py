"""A model behind the REST service that looks like a local one.

The control loop needs an answer whatever the network does: a request that fails is made once more,
and when no answer has come in `timeout` seconds, `basic` stands in and says why.
"""

from __future__ import annotations

import json
from http.client import HTTPException
from time import monotonic, sleep
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from numpy.typing import ArrayLike

from elastream.errors import InvalidInputError
from elastream.predictors.base import (
    Forecast,
    Predictor,
    Samples,
    checked_history,
    checked_horizon,
    stand_in,
)
from elastream.predictors.wire import from_wire

ATTEMPTS = 2
PAUSE_SECONDS = 0.05
LONGEST_ANSWER = 8 * 1024 * 1024


class RemotePredictor(Predictor):
    """The model `model` of the service at `url`, for instance `http://127.0.0.1:8888`."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        timeout: float = 1.0,
        token: str | None = None,
    ) -> None:
        if urlsplit(url).scheme not in {"http", "https"}:
            raise InvalidInputError(f"the service {url!r} must be an http or https address")
        if not timeout > 0:
            raise InvalidInputError(f"the time-out must be more than 0 seconds, not {timeout}")
        self.name = f"{model}@{url}"
        self.model = model
        self.timeout = timeout
        self._url = f"{url.rstrip('/')}/predict/{quote(model, safe='')}"
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def predict(self, history: ArrayLike, horizon: int) -> Forecast:
        """Ask the service; the time-out covers all attempts."""
        samples = checked_history(history)
        steps = checked_horizon(horizon)
        body = json.dumps({"samples": samples.tolist(), "horizon": steps}).encode()
        deadline = monotonic() + self.timeout
        reason = "no time left"
        for _ in range(ATTEMPTS):
            left = deadline - monotonic()
            if left <= 0:
                break
            try:
                return self._ask(body, steps, left)
            except HTTPError as error:
                reason = _explained(error)
                if error.code < 500:
                    # The service understood and refused: asking again would change nothing.
                    break
            except (OSError, HTTPException, ValueError) as error:
                reason = str(error) or type(error).__name__
            sleep(max(0.0, min(PAUSE_SECONDS, deadline - monotonic())))
        return stand_in(samples, steps, f"remote {self.model} failed: {reason}")

    def _ask(self, body: bytes, horizon: int, seconds: float) -> Forecast:
        request = Request(self._url, data=body, headers=self._headers, method="POST")
        with urlopen(request, timeout=seconds) as answer:
            return from_wire(json.loads(answer.read(LONGEST_ANSWER)), horizon)

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        return self.predict(history, horizon).values


def _explained(error: HTTPError) -> str:
    """The status, and what the service said about it."""
    with error:
        try:
            detail = json.loads(error.read(LONGEST_ANSWER))["detail"]
        except (OSError, ValueError, KeyError, TypeError):
            return f"status {error.code}"
    return f"status {error.code}: {detail}"
