"""A small HTTP server in a thread, for the stubs."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

__all__ = ["Answer", "StubServer"]

Answer = tuple[int, str, bytes]
Handle = Callable[[str, list[str], dict[str, str], bytes], Answer]


def as_json(status: int, value: Any) -> Answer:
    """A JSON response."""
    return status, "application/json", json.dumps(value).encode()


class StubServer(ABC):
    """Serves on a free local port until closed.

    While ``hold`` is cleared, the response to a POST waits, so a test can stop between an effect
    and its response.
    """

    def __init__(self) -> None:
        self.hold = threading.Event()
        self.hold.set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._serve("GET")

            def do_POST(self) -> None:
                self._serve("POST")

            def _serve(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = [unquote(part) for part in self.path.strip("/").split("/")]
                headers = {name.lower(): value for name, value in self.headers.items()}
                status, kind, data = server.handle(method, path, headers, body)
                if method == "POST":
                    server.hold.wait()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    # The client died while it waited; tests do this on purpose.
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as inherited
                """Log nothing; the ledger has the account."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @abstractmethod
    def handle(self, method: str, path: list[str], headers: dict[str, str], body: bytes) -> Answer:
        """Respond to one request."""

    def close(self) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
