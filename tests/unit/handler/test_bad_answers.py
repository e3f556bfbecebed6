"""Answers that are broken, endless or hostile end as errors of httpx2, within bounds."""

import gzip
import socket
import threading
import zlib
from functools import cache
from typing import Any

import httpx2
import pytest

from tests.support.http_server import Answer, Server, answer, cut_off
from tests.unit.handler.conftest import Send
from trunkline.errors import http_error_of
from trunkline.handler.http import exchange

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def endless(first: bytes, again: bytes) -> Answer:
    """Sends these bytes until the client closes the connection."""

    def reply(connection: socket.socket, _request: bytes) -> bool:
        connection.sendall(first)
        while True:
            connection.sendall(again)

    return reply


@cache
def bomb() -> bytes:
    packed = zlib.compressobj(6, zlib.DEFLATED, 31)
    block = bytes(2**20)
    return b"".join([*(packed.compress(block) for _ in range(512)), packed.flush()])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smaller bound for answers."""
    for module in (
        "trunkline.handler.http.exchange",
        "trunkline.handler._async.response",
        "trunkline.handler._sync.response",
    ):
        monkeypatch.setattr(f"{module}.LARGEST_ANSWER", 200_000)


@pytest.mark.parametrize(
    "part",
    [
        b"",
        b"HTTP/1.1 200",
        OK + b"Content-Le",
        OK + b"Content-Length: 10\r\n\r\nhalf",
        CHUNKED + b"5\r\nhal",
        CHUNKED + b"5\r\nwhole\r\n",
        CHUNKED + b"0\r\n",
    ],
)
def test_an_answer_that_is_cut_in_the_middle_is_an_error(send: Send, part: bytes) -> None:
    with Server(cut_off(part)) as server, pytest.raises(httpx2.RemoteProtocolError) as caught:
        send("POST", server.url)
    known = http_error_of(caught.value)
    assert known is not None
    assert known.code == "http_failed"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "part",
    [
        b"220 mail.example ESMTP\r\n\r\n",
        b"HTTP/1.1 999999 OK\r\n\r\n",
        OK + b"Content-Length: -5\r\n\r\n",
        OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nwhole",
        CHUNKED + b"five\r\nwhole\r\n",
        CHUNKED + b"5\r\nwholesome\r\n",
    ],
)
def test_what_is_no_http_is_an_error(send: Send, part: bytes) -> None:
    with Server(cut_off(part)) as server, pytest.raises(httpx2.RemoteProtocolError):
        send("GET", server.url)


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(endless(OK, b"X-Filler: " + b"x" * 1000 + b"\r\n"), id="headers"),
        pytest.param(endless(OK + b"X-Filler: ", b"x" * 1000), id="one header"),
        pytest.param(endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="interim answers"),
        pytest.param(
            endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), id="early hints"
        ),
        pytest.param(
            endless(CHUNKED + b"0\r\n", b"X-Filler: " + b"x" * 1000 + b"\r\n"), id="trailers"
        ),
        pytest.param(endless(CHUNKED + b"1;", b"x" * 1000), id="chunk extension"),
    ],
)
def test_what_never_ends_is_an_error_long_before_the_timeout(send: Send, hostile: Answer) -> None:
    """Headers, interim answers and trailers have bounds in bytes."""
    with Server(hostile) as server, pytest.raises(httpx2.RemoteProtocolError):
        send("GET", server.url, timeout=300)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(answer(b"x" * 400_000), id="length"),
        pytest.param(endless(OK + b"\r\n", b"x" * 10_000), id="until the end"),
        pytest.param(endless(CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n"), id="chunks"),
        pytest.param(
            endless(CHUNKED, b"1;" + b"x" * 4000 + b"\r\nx\r\n"), id="chunks of mostly nothing"
        ),
    ],
)
def test_a_body_that_is_too_large_is_an_error(send: Send, small: None, body: Answer) -> None:
    with Server(body) as server, pytest.raises(httpx2.RequestError, match="too large"):
        send("GET", server.url, timeout=300)


@pytest.mark.parametrize("times", [1, 2])
def test_a_decompression_bomb_is_an_error(send: Send, times: int) -> None:
    """The whole would be half a gigabyte; decompressing stops at the bound of an answer."""
    data, encoding = bomb(), "gzip"
    if times == 2:
        data, encoding = gzip.compress(data), "gzip, gzip"
    assert len(data) < 2**20
    with (
        Server(answer(data, f"Content-Encoding: {encoding}")) as server,
        pytest.raises(httpx2.DecodingError, match="too large when decompressed") as caught,
    ):
        send("GET", server.url, timeout=300)
    assert "secret" not in str(caught.value)


def test_an_honest_compressed_answer_is_counted_as_it_arrived(send: Send) -> None:
    """RF-57, RF-135: bytes on the wire, not those of the decompressed body."""
    data = gzip.compress(b"x" * 100_000)
    with Server(answer(data, "Content-Encoding: gzip")) as server:
        found = send("GET", server.url)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\nContent-Encoding: gzip\r\n\r\n"
    assert found.content == b"x" * 100_000
    assert found.extensions["wire_bytes"] == len(head) + len(data)


def test_a_body_that_does_not_match_its_encoding_is_an_error(send: Send) -> None:
    with (
        Server(answer(b"not compressed", "Content-Encoding: gzip")) as server,
        pytest.raises(httpx2.DecodingError) as caught,
    ):
        send("GET", server.url)
    known = http_error_of(caught.value)
    assert known is not None
    assert known.code == "http_failed"


def test_an_interim_answer_is_skipped_and_counted(send: Send) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    final = OK + b"Content-Length: 2\r\n\r\nok"
    with Server(cut_off(early + final)) as server:
        found = send("GET", server.url)
    assert (found.status_code, found.text) == (200, "ok")
    assert found.extensions["wire_bytes"] == len(early + final)


def test_rf_76_a_slow_drip_ends_with_the_total_timeout(send: Send) -> None:
    ended = threading.Event()

    def drip(connection: socket.socket, _request: bytes) -> bool:
        connection.sendall(OK + b"Content-Length: 100000\r\n\r\n")
        while not ended.wait(0.02):
            connection.sendall(b"x")
        return False

    with Server(drip) as server, pytest.raises(httpx2.ReadTimeout, match=r"1\.5 seconds") as caught:
        send("GET", server.url, timeout=1.5)
    ended.set()
    known = http_error_of(caught.value)
    assert known is not None
    assert known.code == "http_timeout"


def test_a_scheme_that_is_not_http_is_refused(send: Send) -> None:
    for url in ("ftp://localhost/", "ws://localhost/", "localhost", "http://"):
        with pytest.raises(httpx2.UnsupportedProtocol):
            send("GET", url)


def test_the_bounds_are_those_of_the_documentation() -> None:
    found: Any = exchange
    assert found.LARGEST_ANSWER == 64 * 2**20
    assert found.DEFAULT_TIMEOUT == 10.0
