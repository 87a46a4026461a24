"""A connection that can be cut: a relay between a client and a service."""

import asyncio
from threading import Thread
from typing import Self
from urllib.parse import urlsplit


class Relay:
    """Passes bytes on, until it is cut: then it drops what is open and refuses what is new."""

    def __init__(self, url: str) -> None:
        self._port = urlsplit(url).port
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._open: set[asyncio.StreamWriter] = set()
        self._cut = False

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.start_server(self._connect, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Break every connection, and let no new one come up."""
        self._loop.call_soon_threadsafe(self._break)

    def mend(self) -> None:
        """Let connections through again."""
        self._cut = False

    def _break(self) -> None:
        self._cut = True
        for writer in self._open:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {writer}
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
            ends.add(back)
            self._open |= ends
            if not self._cut:
                await asyncio.gather(_pump(reader, back), _pump(there, writer))
        except ConnectionError:
            pass
        finally:
            self._open -= ends
            for end in ends:
                end.transport.abort()

    async def _close(self) -> None:
        self._server.close()
        while self._open:
            self._break()
            await asyncio.sleep(0.01)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
