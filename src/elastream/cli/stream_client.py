"""The client behind `elastream top`: follows a running pipeline through its service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from elastream.errors import InvalidInputError

SILENCE_SECONDS = 40.0
"""The service says something every 15 s; one that is silent for longer is gone."""


class Event(NamedTuple):
    """One server-sent event."""

    kind: str
    content: Any


class LostError(Exception):
    """The connection broke; the message says how."""


class StreamClient:
    """Follows one service; a reopened stream continues where the last one broke."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url if "//" in url else f"//{url}", scheme="http")
        try:
            known = parts.scheme in {"http", "https"} and parts.hostname is not None
            self._port = parts.port
        except ValueError:
            known = False
        if not known:
            raise InvalidInputError(f"{url}: it must be an address such as http://127.0.0.1:8888")
        self.url = url
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host = str(parts.hostname)
        self._path = parts.path.rstrip("/")
        self._authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._last: str | None = None

    def pipeline(self) -> dict[str, Any]:
        """What runs there."""
        with self._get("/api/pipeline") as answer:
            try:
                found: dict[str, Any] = json.load(answer)
            except ValueError:
                raise LostError("what answers there is not an elastream run") from None
        return found

    def events(self) -> Iterator[Event]:
        """What happens there, until the connection breaks."""
        headers = {} if self._last is None else {"Last-Event-ID": self._last}
        with self._get("/api/stream", headers) as answer:
            kind, data = "", ""
            for raw in answer:
                line = raw.decode().rstrip("\r\n")
                field, _, value = line.partition(": ")
                if field == "id":
                    self._last = value
                elif field == "event":
                    kind = value
                elif field == "data":
                    data = value
                elif not line and data:
                    yield Event(kind, json.loads(data))
                    kind = data = ""
        raise LostError("the service ended the stream")

    @contextmanager
    def _get(self, path: str, headers: dict[str, str] | None = None) -> Iterator[HTTPResponse]:
        connection = self._kind(self._host, self._port, timeout=SILENCE_SECONDS)
        try:
            headers = self._authorization | (headers or {})
            connection.request("GET", self._path + path, headers=headers)
            with connection.getresponse() as answer:
                if answer.status == 401:
                    raise LostError("it requires a token: set ELASTREAM_TOKEN, or give --token")
                if answer.status != 200:
                    raise LostError(f"it answers with status {answer.status}")
                yield answer
        except (OSError, HTTPException) as error:
            raise LostError(str(error) or type(error).__name__) from None
        finally:
            connection.close()
