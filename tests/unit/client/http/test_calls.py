"""Calls over real connections: time, bytes, reuse, TLS; the same for event loops and threads."""

import asyncio
import logging
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.unit.client.http.server import Server, answer
from tests.worker.scene import a_job
from trunkline.client._async.flow import AsyncFlow
from trunkline.client._async.http import AsyncConnections
from trunkline.client._sync.flow import SyncFlow
from trunkline.client._sync.http import SyncConnections
from trunkline.client.http import wires
from trunkline.client.http.response import Response
from trunkline.errors import BadStatus, HttpFailed, HttpTimeout, RateLimited

Send = Callable[..., Response]


@pytest.fixture(params=["loop", "uvloop", "thread"])
def send(request: pytest.FixtureRequest) -> Iterator[Send]:
    """Calls without limits, by both clients; the link to an engine is never used."""
    link: Any = None
    if request.param == "thread":
        connections = SyncConnections()
        yield SyncFlow(link, a_job(), None, connections).http.request
        connections.close()
        return
    factory = uvloop.new_event_loop if request.param == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        kept = AsyncConnections()
        http = AsyncFlow(link, a_job(), None, kept).http

        async def wait(coming: Awaitable[Response]) -> Response:
            return await coming

        yield lambda *arguments, **options: runner.run(wait(http.request(*arguments, **options)))
        kept.close()


def cut_off(*parts: bytes) -> Any:
    """Sends this, and ends the connection."""

    def reply(connection: socket.socket, _request: bytes) -> bool:
        for part in parts:
            connection.sendall(part)
        return False

    return reply


def test_a_call_is_answered_and_every_byte_counted(send: Send) -> None:
    """RF-57, RF-135: header bytes and body bytes as received, not what Content-Length says."""
    with Server(answer(b'{"a": 1}', "X-Kind: test")) as server:
        found = send("POST", server.url, json={"q": "ü"}, headers={"X-Key": "k"})
    assert (found.status, found.ok, found.json()) == (200, True, {"a": 1})
    assert found.headers["x-kind"] == "test"
    whole = b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\nX-Kind: test\r\n\r\n{"a": 1}'
    assert found.wire_bytes == len(whole)
    assert server.requests[0].startswith(b"POST /v1?key=secret HTTP/1.1\r\n")
    assert server.requests[0].endswith('{"q":"ü"}'.encode())


def test_a_server_with_an_address_of_ipv6_is_reached(send: Send) -> None:
    try:
        server = Server(host="::1")
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    with server:
        assert send("POST", f"http://[::1]:{server.port}/").text == "ok"


def test_a_connection_is_used_again(send: Send) -> None:
    with Server() as server:
        for _ in range(3):
            assert send("POST", server.url).text == "ok"
    assert (len(server.requests), server.connections) == (3, 1)


@pytest.mark.parametrize(("bound", "value"), [("_KEPT", 0.0), ("_MOST_KEPT", 0)])
def test_one_is_kept_for_a_while_and_only_some_of_them(
    send: Send, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    for kind in ("_async", "_sync"):
        monkeypatch.setattr(f"trunkline.client.{kind}.http.{bound}", value)
    with Server() as server:
        for _ in range(3):
            assert send("POST", server.url).text == "ok"
    assert server.connections == 3


def test_one_that_the_server_ends_is_not(send: Send) -> None:
    with Server(answer(b"ok", "Connection: close", close=True)) as server:
        assert send("GET", server.url).ok
        assert send("GET", server.url).ok
    assert server.connections == 2


def test_one_that_ended_silently_is_noticed_before_a_request_is_lost(send: Send) -> None:
    """A POST, which nobody may repeat."""
    with Server(answer(close=True)) as server:
        assert send("POST", server.url).ok
        assert server.closed.wait(10)
        assert send("POST", server.url).ok
    assert (len(server.requests), server.connections) == (2, 2)


@pytest.mark.parametrize(("method", "sent"), [("GET", 3), ("POST", 2)])
def test_only_what_may_be_repeated_is_repeated(send: Send, method: str, sent: int) -> None:
    """The server reads the request on a kept connection and ends it without a word."""
    with Server(answer(), cut_off()) as server:
        assert send(method, server.url).ok
        if method == "GET":
            assert send(method, server.url).ok
        else:
            with pytest.raises(HttpFailed):
                send(method, server.url)
        assert len(server.requests) == sent


def test_a_request_whose_answer_has_begun_is_not_repeated(send: Send) -> None:
    """Not even a GET: the provider has counted it, and part of the answer was paid for."""
    begun = b"HTTP/1.1 200 OK\r\n"
    with Server(answer(), cut_off(begun)) as server:
        assert send("GET", server.url).ok
        with pytest.raises(HttpFailed) as caught:
            send("GET", server.url)
        assert len(server.requests) == 2
    assert caught.value.received == len(begun)


@pytest.mark.parametrize("part", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\nhalf"])
def test_one_timeout_covers_headers_and_body(send: Send, part: bytes) -> None:
    """RF-76: a provider that sends a byte now and then does not outlast it."""
    ended = threading.Event()

    def drip(connection: socket.socket, _request: bytes) -> bool:
        connection.sendall(part + b"x")
        while not ended.wait(0.05):
            connection.sendall(b"x")
        return False

    begin = time.monotonic()
    with Server(drip) as server, pytest.raises(HttpTimeout) as caught:
        send("GET", server.url, timeout="900ms")
    taken = time.monotonic() - begin
    ended.set()
    # The provider would go on for ever.
    assert taken >= 0.9
    assert "0.9 seconds" in str(caught.value)
    assert "secret" not in str(caught.value)
    # What arrived was paid for.
    assert caught.value.received > len(part)


def test_the_timeout_covers_the_connection_too(send: Send) -> None:
    """RF-76: a server that accepts nobody, since its queue is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        begin = time.monotonic()
        with pytest.raises(HttpTimeout):
            send("GET", f"http://127.0.0.1:{port}/", timeout="300ms")
        taken = time.monotonic() - begin
        for one in waiting:
            one.close()
    # The system gives up after two minutes.
    assert taken < 60


def test_time_that_is_over_before_a_step_begins_is_a_timeout(send: Send) -> None:
    """RF-76: on a new connection and on a kept one; no step waits for a negative time."""
    with Server() as server:
        with pytest.raises(HttpTimeout):
            send("GET", server.url, timeout=0)
        assert send("GET", server.url).ok
        with pytest.raises(HttpTimeout):
            send("GET", server.url, timeout=0)
        assert send("GET", server.url).ok
    assert len(server.requests) == 2


def test_threads_share_what_is_kept() -> None:
    """None of them finds a connection that another one has just taken."""
    link: Any = None
    connections = SyncConnections()
    http = SyncFlow(link, a_job(), None, connections).http
    statuses: list[int] = []
    with Server() as server:

        def call() -> None:
            statuses.extend(http.post(server.url).status for _ in range(40))

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    connections.close()
    assert statuses == [200] * 320
    assert server.connections <= 8


def test_ten_seconds_are_the_default() -> None:
    """RF-76."""
    seen: list[float] = []

    class Connections(SyncConnections):
        def exchange(self, outgoing: Any, deadline: Any) -> Any:
            seen.append(deadline.total)
            raise ConnectionRefusedError(outgoing.place)

    link: Any = None
    with pytest.raises(HttpFailed):
        SyncFlow(link, a_job(), None, Connections()).http.get("http://x/")
    assert seen == [10.0]


def test_no_connection_is_a_failure(send: Send) -> None:
    with Server() as server:
        url = server.url
    with pytest.raises(HttpFailed) as caught:
        send("GET", url)
    assert caught.value.code == "http_failed"
    assert "secret" not in str(caught.value)


def test_what_is_no_http_is_a_failure_and_tells_what_arrived(send: Send) -> None:
    mail = cut_off(b"220 mail.example ESMTP\r\n\r\n")
    with Server(mail) as server, pytest.raises(HttpFailed, match="status line") as caught:
        send("GET", server.url)
    assert caught.value.received == 26


def test_redirects_are_answers(send: Send) -> None:
    with Server(answer(b"", "Location: /elsewhere", status="302 Found")) as server:
        found = send("GET", server.url)
    assert (found.status, found.headers["location"], len(server.requests)) == (302, "/elsewhere", 1)


def test_a_status_becomes_an_error_where_that_is_wanted(send: Send) -> None:
    with Server(answer(b"no such model", status="404 Not Found")) as server:
        found = send("GET", server.url)
        assert not found.ok
        with pytest.raises(BadStatus, match="404 Not Found: no such model") as caught:
            found.raise_for_status()
    assert caught.value.status == 404
    assert "secret" not in str(caught.value)


def test_a_refusal_of_the_provider_is_raised_or_returned(send: Send) -> None:
    """RF-83: 429 is no failure; the worker puts the attempt off."""
    refusal = answer(b"", "Retry-After: 7", status="429 Too Many Requests")
    with Server(refusal, refusal) as server:
        with pytest.raises(RateLimited) as caught:
            send("GET", server.url)
        assert (caught.value.status, caught.value.retry_after) == (429, 7.0)
        assert send("GET", server.url, raise_for_limit=False).status == 429


def test_nonsense_about_limits_is_logged_and_changes_nothing(
    send: Send, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, logger="trunkline.http"),
        Server(answer(b"ok", "X-RateLimit-Remaining: lots", "Retry-After: soon")) as server,
    ):
        assert send("GET", server.url).text == "ok"
    assert "x-ratelimit-remaining, retry-after" in caplog.text
    assert "secret" not in caplog.text


def test_text_is_read_by_its_charset(send: Send) -> None:
    latin = answer("grün".encode("latin-1"), "Content-Type: text/plain; charset=ISO-8859-1")
    with Server(latin, answer("grün".encode(), "Content-Type: text/plain; charset=none")) as server:
        assert send("GET", server.url).text == "grün"
        assert send("GET", server.url).text == "grün"
        with pytest.raises(ValueError, match="is no JSON"):
            send("GET", server.url).json()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of localhost that nobody knows, with its key."""
    folder = tmp_path_factory.mktemp("tls")
    openssl = shutil.which("openssl")
    assert openssl is not None
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")),
        ],
        check=True,
        capture_output=True,
    )
    return folder


def test_certificates_are_verified(
    send: Send, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    wires._tls.cache_clear()  # noqa: SLF001 - it was read from the system for other tests
    with Server(tls=tls) as server:
        with pytest.raises(HttpFailed, match=r"(?i)certificate"):
            send("GET", server.url)
        wires._tls.cache_clear()  # noqa: SLF001
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "certificate.pem"))
        assert send("GET", server.url).text == "ok"
        assert send("GET", server.url).text == "ok"
    wires._tls.cache_clear()  # noqa: SLF001
    assert server.connections == 2
