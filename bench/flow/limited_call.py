"""The additional processor time of a limited call, compared with one by plain httpx2.

One worker process calls a server in this process, in rounds of plain and limited calls. The cost of
`acquire` and `settle` in the database server is a separate figure.
"""

import json
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg

from bench.apps.limited_calls import LIMIT, app
from bench.cpu import cpu_seconds, parent_of
from bench.figures import Figure
from bench.place import Place
from bench.rivals.product import ROOT
from bench.sizes import Sizes

__all__ = ["run"]

_GOAL = 1.5
_BODY = json.dumps({"usage": {"total_tokens": 1}}).encode()
_PARTS = {"requests_per_minute": 10_000_000, "tokens_per_minute": 10_000_000, "concurrency": 100}
_WAIT = 120.0


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal: at most 1.5 ms."""
    figures: list[Figure] = []
    with (
        place.database("limited_call") as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
        app.connect_to(dsn),
        _provider() as url,
    ):
        connection.execute("select trunkline.set_limit(%s, %s::jsonb)", (LIMIT, json.dumps(_PARTS)))
        for task in app.tasks:
            connection.execute(
                "select trunkline.register_task(p_task => %s, p_limits => %s)", (task, [LIMIT])
            )
        postmaster = parent_of(connection.info.backend_pid)
        with _worker(place, dsn):
            for task in app.tasks:
                figures += _compare(task, url, postmaster, sizes)
    return figures


def _compare(task: str, url: str, postmaster: int, sizes: Sizes) -> Iterator[Figure]:
    calls = sizes.flow.limited_calls
    used: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for _ in range(sizes.flow.limited_call_rounds):
        for limited, rounds in used.items():
            before = cpu_seconds([postmaster])
            job = app.tasks[task].sync.enqueue(url=url, calls=calls, limited=limited)
            seconds = job.wait(timeout=_WAIT)
            rounds.append((seconds, cpu_seconds([postmaster]) - before))
    worker, server = (
        [
            statistics.median(times[side] for times in used[limited]) * 1000 / calls
            for limited in (False, True)
        ]
        for side in (0, 1)
    )
    key, kind = f"limited_call_{task}", task.replace("_", " ")
    more = worker[1] - worker[0]
    yield Figure(f"{key}_plain", worker[0], f"{kind}: a plain call", "ms")
    yield Figure(f"{key}_limited", worker[1], "  a limited call", "ms")
    yield Figure(f"{key}_more", more, "  more", "ms", goal=_GOAL, better="at most")
    yield Figure(f"{key}_server", server[1] - server[0], "  more in PostgreSQL", "ms")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Sends headers and body together; otherwise each send waits for a delayed TCP acknowledgement.
    wbufsize = -1

    def do_GET(self) -> None:
        """Respond as a provider does."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(_BODY)))
        self.end_headers()
        self.wfile.write(_BODY)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def _provider() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextmanager
def _worker(place: Place, dsn: str) -> Iterator[None]:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from trunkline.cli.main import main; main()",
            "worker",
            "bench.apps.limited_calls:app",
        ],
        cwd=ROOT,
        env={**os.environ, **place.python_path, "TRUNKLINE_DSN": dsn},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()
