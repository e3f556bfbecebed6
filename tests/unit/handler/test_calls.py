"""Calls over real connections: time, bytes, reuse; the same for event loops and threads."""

import json
import logging
import socket
import threading
import time

import httpx2
import pytest

from tests.support.http_server import Server, answer, cut_off
from tests.unit.handler.conftest import LINK, Send, unlimited
from tests.worker.scene import a_job
from trunkline.errors import RateLimited
from trunkline.handler.grants import SyncConnections, SyncGrants


def test_a_call_is_answered_and_every_byte_counted(send: Send) -> None:
    """RF-57, RF-135: header bytes and body bytes as received, not what Content-Length says."""
    with Server(answer(b'{"a": 1}', "X-Kind: test")) as server:
        found = send("POST", server.url, json={"q": "ü"}, headers={"X-Key": "k"})
    assert (found.status_code, found.is_success, found.json()) == (200, True, {"a": 1})
    assert found.headers["x-kind"] == "test"
    whole = b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\nX-Kind: test\r\n\r\n{"a": 1}'
    assert found.extensions["wire_bytes"] == len(whole)
    assert server.requests[0].startswith(b"POST /v1?key=secret HTTP/1.1\r\n")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert json.loads(body) == {"q": "ü"}
    assert b"User-Agent: trunkline/" in head


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


@pytest.mark.parametrize(("bound", "value"), [("_KEPT", -1.0), ("_MOST_KEPT", 0)])
def test_one_is_kept_for_a_while_and_only_some_of_them(
    send: Send, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    for kind in ("_async", "_sync"):
        monkeypatch.setattr(f"trunkline.handler.{kind}.network.{bound}", value)
    with Server() as server:
        for _ in range(3):
            assert send("POST", server.url).text == "ok"
    assert server.connections == 3


def test_one_that_the_server_ends_is_not(send: Send) -> None:
    with Server(answer(b"ok", "Connection: close", close=True)) as server:
        assert send("GET", server.url).is_success
        assert send("GET", server.url).is_success
    assert server.connections == 2


def test_one_that_ended_silently_is_noticed_before_a_request_is_lost(send: Send) -> None:
    """A POST, which nobody may repeat."""
    with Server(answer(close=True)) as server:
        assert send("POST", server.url).is_success
        assert server.closed.wait(10)
        assert send("POST", server.url).is_success
    assert (len(server.requests), server.connections) == (2, 2)


@pytest.mark.parametrize(("method", "sent"), [("GET", 3), ("POST", 2)])
def test_only_what_may_be_repeated_is_repeated(send: Send, method: str, sent: int) -> None:
    """The server reads the request on a kept connection and ends it without a word."""
    with Server(answer(), cut_off()) as server:
        assert send(method, server.url).is_success
        if method == "GET":
            assert send(method, server.url).is_success
        else:
            with pytest.raises(httpx2.TransportError):
                send(method, server.url)
        assert len(server.requests) == sent


def test_a_request_whose_answer_has_begun_is_not_repeated(send: Send) -> None:
    """Not even a GET: the provider has counted it, and part of the answer was paid for."""
    begun = b"HTTP/1.1 200 OK\r\n"
    with Server(answer(), cut_off(begun)) as server:
        assert send("GET", server.url).is_success
        with pytest.raises(httpx2.RemoteProtocolError):
            send("GET", server.url)
        assert len(server.requests) == 2


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
    with Server(drip) as server, pytest.raises(httpx2.TimeoutException) as caught:
        send("GET", server.url, timeout=0.9)
    taken = time.monotonic() - begin
    ended.set()
    # The provider would go on for ever.
    assert taken >= 0.9
    assert "0.9 seconds" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_timeout_covers_the_connection_too(send: Send) -> None:
    """RF-76: a server that accepts nobody, since its queue is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        begin = time.monotonic()
        with pytest.raises(httpx2.TimeoutException):
            send("GET", f"http://127.0.0.1:{port}/", timeout=0.3)
        taken = time.monotonic() - begin
        for one in waiting:
            one.close()
    # The system gives up after two minutes.
    assert taken < 60


def test_time_that_is_over_before_a_step_begins_is_a_timeout(send: Send) -> None:
    """RF-76: on a new connection and on a kept one; no step waits for a negative time."""
    with Server() as server:
        with pytest.raises(httpx2.TimeoutException):
            send("GET", server.url, timeout=0)
        assert send("GET", server.url).is_success
        with pytest.raises(httpx2.TimeoutException):
            send("GET", server.url, timeout=0)
        assert send("GET", server.url).is_success
    assert len(server.requests) == 2


def test_threads_share_what_is_kept() -> None:
    """None of them gets a connection that another one has just taken."""
    connections = SyncConnections()
    client = SyncGrants(LINK, a_job(), None, connections).http_client(unlimited())
    statuses: list[int] = []
    with Server() as server:

        def call() -> None:
            statuses.extend(client.post(server.url).status_code for _ in range(40))

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    connections.close()
    assert statuses == [200] * 320
    assert server.connections <= 8


def test_rf_76_the_total_timeout_is_ten_seconds_by_default() -> None:
    client = SyncGrants(LINK, a_job(), None, SyncConnections()).http_client(unlimited())
    assert client.timeout == httpx2.Timeout(10.0)


def test_a_step_may_have_a_shorter_timeout(send: Send) -> None:
    """As SDKs pass them: Timeout(600, connect=5)."""
    silent = threading.Event()

    def wait(_connection: socket.socket, _request: bytes) -> bool:
        silent.wait(30)
        return False

    with Server(wait) as server, pytest.raises(httpx2.ReadTimeout, match="in time: ReadTimeout"):
        send("GET", server.url, timeout=httpx2.Timeout(60, read=0.2))
    silent.set()


def test_no_connection_is_a_failure(send: Send) -> None:
    with Server() as server:
        url = server.url
    with pytest.raises(httpx2.ConnectError) as caught:
        send("GET", url)
    assert "secret" not in str(caught.value)


def test_redirects_are_answers(send: Send) -> None:
    with Server(answer(b"", "Location: /elsewhere", status="302 Found")) as server:
        found = send("GET", server.url)
    assert (found.status_code, found.headers["location"]) == (302, "/elsewhere")
    assert len(server.requests) == 1


def test_a_status_becomes_an_error_where_that_is_wanted(send: Send) -> None:
    with Server(answer(b"no such model", status="404 Not Found")) as server:
        found = send("GET", server.url)
        with pytest.raises(httpx2.HTTPStatusError, match="404 Not Found: no such model") as caught:
            found.raise_for_status()
    assert caught.value.response.status_code == 404
    assert "secret" not in str(caught.value)


def test_a_refusal_of_the_provider_is_raised_or_returned(send: Send) -> None:
    """RF-83: 429 is no failure; the worker puts the attempt off."""
    refusal = answer(b"", "Retry-After: 7", status="429 Too Many Requests")
    with Server(refusal, refusal) as server:
        with pytest.raises(RateLimited) as caught:
            send("GET", server.url)
        assert (caught.value.status, caught.value.retry_after) == (429, 7.0)
        assert send("GET", server.url, raise_for_limit=False).status_code == 429


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


def test_the_query_of_an_address_is_not_logged(
    send: Send, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), Server() as server:
        send("GET", server.url)
        assert f"HTTP Request: GET http://localhost:{server.port}/v1" in caplog.text
    assert "secret" not in caplog.text


def test_cookies_do_not_outlive_the_client(send: Send) -> None:
    """The next client belongs to another job, perhaps of another tenant."""
    with Server(answer(b"ok", "Set-Cookie: session=secret")) as server:
        send("GET", server.url)
        send("GET", server.url)
    assert b"cookie" not in server.requests[1].lower()
