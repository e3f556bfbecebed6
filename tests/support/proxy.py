"""A network that can be broken: a TCP proxy in front of a server, controlled per connection.

The proxy acknowledges all TCP packets, so keepalives and TCP_USER_TIMEOUT never detect a silence
that it causes: only a client with a deadline does.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from psycopg.conninfo import conninfo_to_dict

__all__ = ["FaultProxy", "Link"]

_T = TypeVar("_T")
_CHUNK = 65536
_RESET = struct.pack("ii", 1, 0)
_ANSWER = 10.0


class Link:
    """One connection through the proxy. Its methods may be called from any thread."""

    def __init__(self, proxy: "FaultProxy", client: socket.socket) -> None:
        self.to_server = 0
        self.to_client = 0
        self.delay = 0.0
        self._proxy = proxy
        self._client = client
        self._upstream: socket.socket | None = None
        self._passes = asyncio.Event()
        self._passes.set()
        self._answers = asyncio.Event()
        self._answers.set()
        self.task: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self.task is not None and not self.task.done()

    @property
    def mute(self) -> bool:
        return not self._answers.is_set()

    def blackhole(self) -> None:
        """Stop forwarding in both directions without closing: a half-open connection."""
        self._proxy.call(self._passes.clear)

    def resume(self) -> None:
        """Forward again, first the data that was held back, as TCP would."""
        self._proxy.call(self._passes.set)
        self._proxy.call(self._answers.set)

    def hold_answers(self) -> None:
        """Hold back data from the server; data from the client still arrives."""
        self._proxy.call(self._answers.clear)

    def cut(self) -> None:
        """Reset both sides."""
        self._proxy.call(self.reset)

    def close_half(self) -> None:
        """Close the direction to the client; data from the client still arrives."""
        self._proxy.call(self._shut_down_writing)

    def _shut_down_writing(self) -> None:
        # The link may have ended since it was listed.
        with contextlib.suppress(OSError):
            self._client.shutdown(socket.SHUT_WR)

    async def run(self, upstream: Path | tuple[str, int], *, passes: bool) -> None:
        """Forward until both sides have closed. The proxy calls this."""
        loop = asyncio.get_running_loop()
        if not passes:
            self._passes.clear()
        try:
            await self._passes.wait()
            family = socket.AF_UNIX if isinstance(upstream, Path) else socket.AF_INET
            self._upstream = socket.socket(family, socket.SOCK_STREAM)
            self._upstream.setblocking(False)
            address = str(upstream) if isinstance(upstream, Path) else upstream
            await loop.sock_connect(self._upstream, address)
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(self._client, self._upstream, outward=True))
                pumps.create_task(self._pump(self._upstream, self._client, outward=False))
        except* OSError:
            # One side is gone; `close` resets the other one.
            pass
        finally:
            self.close()

    def reset(self) -> None:
        """Close at once with a reset; call this in the proxy's own thread."""
        if self.task is not None:
            self.task.cancel()

    async def _pump(self, source: socket.socket, sink: socket.socket, *, outward: bool) -> None:
        loop = asyncio.get_running_loop()
        while True:
            data = await loop.sock_recv(source, _CHUNK)
            if self.delay:
                await asyncio.sleep(self.delay)
            await self._passes.wait()
            if not outward:
                await self._answers.wait()
            elif self._proxy.marker and self._proxy.marker in data:
                self._answers.clear()
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return
            await loop.sock_sendall(sink, data)
            if outward:
                self.to_server += len(data)
            else:
                self.to_client += len(data)
                self._proxy.to_clients += len(data)

    def close(self) -> None:
        """Close both sides; a second call does nothing."""
        for side in (self._client, self._upstream):
            if side is None:
                continue
            with contextlib.suppress(OSError):
                # A side that has not closed receives a reset.
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            side.close()


def _close_link(link: Link, _: asyncio.Task[None]) -> None:
    link.close()


class FaultProxy:
    """Listens on a loopback port and forwards to a Unix socket or an address."""

    def __init__(self, upstream: Path | tuple[str, int]) -> None:
        self._upstream = upstream
        self._links: list[Link] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._new = "pass"
        self._delay = 0.0
        # Bytes that all connections have received, also those that are closed.
        self.to_clients = 0
        # After a client sends this marker, its connection receives no more answers.
        self.marker = b""
        self._loop = asyncio.new_event_loop()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, name="fault-proxy", daemon=True)
        self._thread.start()

    @classmethod
    def before(cls, dsn: str) -> Self:
        """Create a proxy in front of the server of a connection string."""
        fields = conninfo_to_dict(dsn)
        host, port = str(fields["host"]), int(str(fields.get("port", 5432)))
        if host.startswith("/"):
            return cls(Path(host) / f".s.PGSQL.{port}")
        return cls((host, port))

    def dsn(self, dsn: str) -> str:
        """Return the connection string for the same database through this proxy."""
        fields = conninfo_to_dict(dsn)
        return f"postgresql://{fields['user']}@127.0.0.1:{self.port}/{fields['dbname']}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def links(self) -> list[Link]:
        """The open connections, oldest first."""
        return [link for link in list(self._links) if link.alive]

    def open(self) -> None:
        """Forward all connections again, old and new."""
        self._new, self._delay = "pass", 0.0
        for link in self.links:
            link.delay = 0.0
            link.resume()

    def blackhole(self) -> None:
        """Forward nothing: old connections fall silent, new ones are accepted but not answered."""
        self._new = "hold"
        for link in self.links:
            link.blackhole()

    def blackhole_present(self) -> list[Link]:
        """Silence the present connections for good; new ones work."""
        silenced = self.links
        for link in silenced:
            link.blackhole()
        return silenced

    def refuse(self) -> None:
        """Reset every connection, and every new one."""
        self._new = "refuse"
        self.cut()

    def cut(self) -> None:
        """Reset the present connections; new ones work."""
        for link in self.links:
            link.cut()

    def slow(self, seconds: float) -> None:
        """Delay each chunk of data in both directions."""
        self._delay = seconds
        for link in self.links:
            link.delay = seconds

    def close(self) -> None:
        if self._thread.is_alive():
            self._await(self._shut)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_ANSWER)
            self._loop.close()

    def call(self, action: Callable[[], _T]) -> _T:
        """Run a function in the proxy's thread and return its result."""

        async def act() -> _T:
            return action()

        return self._await(act)

    def _await(self, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        return asyncio.run_coroutine_threadsafe(make(), self._loop).result(_ANSWER)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        # Not sock_accept: a task that is cancelled just after it accepted never closes the socket.
        self._loop.add_reader(self._listener, self._accept)
        self._loop.run_forever()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            # The client has closed the connection meanwhile.
            return
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._new == "refuse":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            client.close()
            return
        link = Link(self, client)
        link.delay = self._delay
        link.task = self._start(link.run(self._upstream, passes=self._new == "pass"))
        # A task that is cancelled before its first step closes nothing itself.
        link.task.add_done_callback(partial(_close_link, link))
        self._links = [*(known for known in self._links if known.alive), link]

    async def _shut(self) -> None:
        self._loop.remove_reader(self._listener)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listener.close()
