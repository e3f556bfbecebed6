"""`trunkline api` as a process: real connections, slow and broken clients, SIGTERM."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.http.site import SECRET, Site, token
from tests.support.waiting import until
from trunkline.errors import JobCancelled
from trunkline.http_client import SyncApiClient

_PORT = re.compile(r"running on http://127.0.0.1:(\d+)")


@dataclass
class Running:
    process: subprocess.Popen[str]
    port: int
    site: Site
    log: Path

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return httpx2.get(f"http://127.0.0.1:{self.port}{path}", **options)

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.settimeout(60)
        return connection

    def lines(self) -> list[dict[str, Any]]:
        whole = self.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in whole if line.endswith("\n") and line.strip()]


@pytest.fixture(scope="module")
def running(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    log = tmp_path_factory.mktemp("api") / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "trunkline", "api", "--port", "0", "--log", "json"],
            env={
                **os.environ,
                "TRUNKLINE_DSN": site.dsn,
                "TRUNKLINE_JWT_SECRET": SECRET,
                "TRUNKLINE_JWT_ROLES": site.tenant_role,
                "TRUNKLINE_API_BODY_TIMEOUT": "1s",
                "TRUNKLINE_API_MAX_BODY": "20000",
                "TRUNKLINE_API_CONNECTIONS": "1",
                "TRUNKLINE_API_CORS_ORIGINS": "https://app.example.org",
            },
            stderr=file,
            text=True,
        )
        until(
            lambda: process.poll() is not None or _PORT.search(log.read_text()) is not None,
            "the API listens",
        )
        found = _PORT.search(log.read_text())
        assert found is not None, log.read_text()
        yield Running(process, int(found[1]), site, log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, log.read_text()
    text = log.read_text()
    assert "Traceback" not in text
    assert "traceback" not in text


def reader(running: Running) -> dict[str, str]:
    return {"Authorization": f"Bearer {running.site.keys['reader']}"}


def answer(connection: socket.socket) -> bytes:
    """Read until the server closes or has sent a whole answer."""
    data = b""
    while b"\r\n\r\n" not in data or len(data) < _length(data):
        part = connection.recv(65536)
        if not part:
            break
        data += part
    return data


def _length(data: bytes) -> int:
    head, _, _ = data.partition(b"\r\n\r\n")
    found = re.search(rb"(?i)content-length: (\d+)", head)
    return len(head) + 4 + int(found[1]) if found else 0


def test_a_request_has_an_id_and_a_line_in_the_log(running: Running) -> None:
    secret = running.site.keys["reader"].rpartition("_")[2]
    headers = {**reader(running), "X-Request-ID": "mine-1", "X-Correlation-ID": "story-7"}
    response = running.get("/v1/jobs?tag=private", headers=headers)
    assert response.headers["x-request-id"] == "mine-1"
    # It is written after the answer has been sent.
    (line,) = until(
        lambda: [each for each in running.lines() if each.get("request_id") == "mine-1"],
        "the line is in the log",
    )
    assert (line["method"], line["path"], line["status"]) == ("GET", "/v1/jobs", 200)
    assert (line["caller"], line["correlation_id"]) == ("key reader", "story-7")
    assert "private" not in running.log.read_text()
    assert secret not in running.log.read_text()


@pytest.mark.parametrize("bad", ["a b", "x" * 200, "a\tb"])
def test_an_id_that_is_no_plain_text_is_replaced(running: Running, bad: str) -> None:
    response = running.get("/ready", headers={"X-Request-ID": bad})
    assert re.fullmatch(r"[0-9a-f]{16}", response.headers["x-request-id"])


def test_a_slow_body_is_given_up_and_holds_no_connection(running: Running) -> None:
    with running.connect() as slow:
        slow.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
            b"Content-Type: application/json\r\n"
            + f"Authorization: Bearer {running.site.keys['producer']}\r\n\r\n{{".encode()
        )
        # There is one connection to the database, and others get it meanwhile.
        assert running.get("/v1/jobs", headers=reader(running)).status_code == 200
        reply = answer(slow)
        assert reply.startswith(b"HTTP/1.1 408 ")
        assert b"body_too_slow" in reply
        assert slow.recv(1) == b""


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_is_refused(running: Running, chunked: bool) -> None:
    body = b'{"task": "' + b"x" * 30_000 + b'"}'
    response = httpx2.post(
        f"http://127.0.0.1:{running.port}/v1/jobs",
        content=iter([body]) if chunked else body,
        headers={"Authorization": f"Bearer {running.site.keys['producer']}"},
    )
    assert response.status_code == 413
    assert response.json()["facts"] == {"max_bytes": 20_000}


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 200_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nz\r\n",
        b"GET /v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /files/../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /files/%2e%2e%2fetc?expires=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /v1/jobs/%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /v1/jobs HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer \xff\r\n\r\n",
        b"TRACE /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ],
    ids=range(11),
)
def test_broken_requests_are_answered_and_the_server_lives(
    running: Running, request_bytes: bytes
) -> None:
    with running.connect() as connection:
        connection.sendall(request_bytes)
        reply = answer(connection)
    if reply:
        assert re.match(rb"HTTP/1.1 4\d\d ", reply), reply[:200]
    assert running.get("/ready").status_code == 200


def test_large_answers_are_compressed(running: Running) -> None:
    plain = running.get("/v1/settings", headers={**reader(running), "Accept-Encoding": "identity"})
    packed = running.get("/v1/settings", headers={**reader(running), "Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.json() == plain.json()
    assert int(packed.headers["content-length"]) < len(plain.content) / 2


def test_pages_of_configured_origins_may_call(running: Running) -> None:
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "Authorization",
    }
    ours = {"Origin": "https://app.example.org", **asked}
    url = f"http://127.0.0.1:{running.port}/v1/jobs"
    allowed = httpx2.options(url, headers=ours)
    assert allowed.headers["access-control-allow-origin"] == "https://app.example.org"
    other = httpx2.options(url, headers={**ours, "Origin": "https://evil.example.org"})
    assert "access-control-allow-origin" not in other.headers


def test_methods_and_paths_that_do_not_exist_are_problems(running: Running) -> None:
    assert running.get("/nothing").json()["code"] == "unknown_path"
    assert running.get("/v1/jobs/").json()["code"] == "unknown_path"
    response = httpx2.put(f"http://127.0.0.1:{running.port}/v1/jobs")
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    assert set(response.headers["allow"].replace(" ", "").split(",")) >= {"GET", "POST"}


def test_tokens_work_over_the_wire(running: Running) -> None:
    headers = {"Authorization": f"Bearer {token(tenant='a')}"}
    assert running.get("/v1/jobs", headers=headers).json() == {"jobs": [], "next": None}


_GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "http.md"
_EXAMPLES = re.findall(r"```text\n((?:.*\n)*?)```", _GUIDE.read_text(encoding="utf-8"))
_CURL = [example for example in _EXAMPLES if example.lstrip().startswith(("curl", "job="))]


@pytest.mark.parametrize("example", _CURL, ids=range(len(_CURL)))
def test_examples_of_the_guide_work(running: Running, example: str) -> None:
    """The shell runs what a reader copies; curl fails on any error."""
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", example],
        env={
            **os.environ,
            "TRUNKLINE_URL": f"http://127.0.0.1:{running.port}",
            "TRUNKLINE_KEY": running.site.keys["producer"],
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{")


def test_the_blocking_client_works(running: Running) -> None:
    address = f"http://127.0.0.1:{running.port}"
    with SyncApiClient(address, running.site.keys["producer"]) as api:
        job = api.jobs.create("report", {"n": 1}, tags=["blocking"])
        assert [found.id for found in api.jobs.list_all(tag="blocking")] == [job.job_id]
        assert api.jobs.cancel(job.job_id, reason="done").state == "cancelled"
        with pytest.raises(JobCancelled, match="done"):
            api.jobs.wait(job.job_id, timeout=5)


def test_the_process_may_open_all_files_that_its_user_may(running: Running) -> None:
    limits = Path(f"/proc/{running.process.pid}/limits").read_text()
    (soft, hard) = re.findall(r"Max open files\s+(\S+)\s+(\S+)", limits)[0]
    assert soft == hard


def test_sigterm_ends_it_with_a_client_that_does_not_leave(running: Running) -> None:
    """The last test of the module: the fixture waits for the end of the process."""
    with running.connect() as idle:
        idle.sendall(b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer(idle).startswith(b"HTTP/1.1 200 ")
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(30) == 0
