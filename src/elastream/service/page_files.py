"""The page: files in the package, and headers that restrict the browser."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER = Path(__file__).parent / "page"
HEADERS = {
    # Nothing from elsewhere, and nobody else's page around ours.
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Files keep their names when they change: ask whether they have. Figures are never kept.
    "Cache-Control": "no-cache",
}


class HeaderGate:
    """Adds the headers to every answer that has not set them itself."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, with_headers)


def add_page(app: FastAPI) -> None:
    """Serve the page at `/`, and what it needs under `/assets/`."""

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(FOLDER / "index.html")

    app.mount("/assets", StaticFiles(directory=FOLDER, check_dir=False))
