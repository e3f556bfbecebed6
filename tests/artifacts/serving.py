"""A small HTTP server that answers the links of a local store, as your server would."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from trunkline.artifacts import LocalStore, answer_link

__all__ = ["serving"]


@contextmanager
def serving(folder: Path) -> Iterator[LocalStore]:
    """Yield a store whose links work."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            path = parts.path.removeprefix("/files")
            answer = answer_link(
                store, self.command, path, parts.query, dict(self.headers), body=self._body()
            )
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            for chunk in answer.body:
                self.wfile.write(chunk)

        do_HEAD = do_PUT = do_GET  # noqa: N815 - the names that the server calls

        def _body(self) -> Iterator[bytes]:
            left = int(self.headers.get("Content-Length") or 0)
            while left and (chunk := self.rfile.read1(min(left, 1 << 16))):
                left -= len(chunk)
                yield chunk

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    store = LocalStore(folder, link_base=f"http://127.0.0.1:{server.server_address[1]}/files")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
