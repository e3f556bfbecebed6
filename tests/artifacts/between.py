"""A proxy between a store and its server, which fails on demand."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.artifacts.conftest import open_bucket
from tests.support.s3_servers import S3Server
from trunkline.artifacts import ObjectStore

__all__ = ["between"]


@contextmanager
def between(
    server: S3Server,
    judge: Callable[[str, str, int], int | None],
    *,
    after: Callable[[str], None] = lambda _path: None,
) -> Iterator[ObjectStore]:
    """Put an HTTP proxy before a server, and yield a store that uses it.

    The proxy answers itself with the status that `judge` returns. `after` gets
    the path of a request when the server has answered, before the client gets the answer.
    """
    counts: dict[str, int] = {}

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            counts[self.command] = counts.get(self.command, 0) + 1
            status = judge(self.command, self.path, counts[self.command])
            if status is not None:
                text = b"<Error><Code>InsufficientStorage</Code></Error>" * (status == 507)
                self._answer(status, {}, text)
                return
            upstream = http.client.HTTPConnection(server.endpoint.removeprefix("http://"))
            # The signature covers the host that the client knows.
            upstream.request(self.command, self.path, body, dict(self.headers))
            found = upstream.getresponse()
            content = found.read()
            upstream.close()
            after(self.path)
            self._answer(found.status, dict(found.headers), content)

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            # The client may be dead.
            with suppress(ConnectionError):
                self._send(status, headers, body)

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in {"transfer-encoding", "content-length", "connection"}:
                    self.send_header(name, value)
            length = headers.get("Content-Length") if self.command == "HEAD" else None
            self.send_header("Content-Length", length or str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Print nothing."""

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        changed = S3Server(
            f"http://127.0.0.1:{proxy.server_address[1]}",
            server.access_key,
            server.secret_key,
            server.bucket,
            server.pids,
            server.creates,
        )
        yield open_bucket(changed)
    finally:
        proxy.shutdown()
        proxy.server_close()
