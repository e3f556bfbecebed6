"""A server that sends exactly the bytes of a test, and records the requests."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType
from typing import Self

__all__ = ["Server", "answer", "cut_off"]

Answer = Callable[[socket.socket, bytes], bool]


def answer(
    body: bytes = b"ok", *headers: str, status: str = "200 OK", close: bool = False
) -> Answer:
    """Return an ordinary answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    data = "\r\n".join(lines).encode("latin-1") + body

    def reply(connection: socket.socket, _request: bytes) -> bool:
        connection.sendall(data)
        return not close

    return reply


def cut_off(*parts: bytes) -> Answer:
    """Return an answer that sends these bytes and closes the connection."""

    def reply(connection: socket.socket, _request: bytes) -> bool:
        for part in parts:
            connection.sendall(part)
        return False

    return reply


class Server:
    """Gives each request the next answer, or an ordinary one after the last."""

    def __init__(
        self, *answers: Answer, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> None:
        self._answers: SimpleQueue[Answer] = SimpleQueue()
        for reply in answers:
            self._answers.put(reply)
        self._tls = tls
        self.requests: list[bytes] = []
        self.connections = 0
        # Set as soon as a connection has ended on this side.
        self.closed = threading.Event()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://localhost:{self.port}/v1?key=secret"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take no more connections."""
        # Without shutdown, the thread in accept would serve one more connection.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                while (request := _request(connection)) is not None:
                    self.requests.append(request)
                    reply = answer() if self._answers.empty() else self._answers.get()
                    if not reply(connection, request):
                        break
        self.closed.set()


def _request(connection: socket.socket) -> bytes | None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return None
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    ]
    while lengths and len(body) < lengths[0]:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
