"""Responses taken apart, however their bytes arrive; every byte is counted (RF-57, RF-135)."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.client.http.incoming import Incoming, MalformedResponse

_MOST = 10_000


def fed(*parts: bytes, method: str = "GET", most: int = _MOST) -> Incoming:
    incoming = Incoming(method, most)
    for part in parts:
        incoming.feed(part)
    return incoming


def head(*lines: str, status: str = "HTTP/1.1 200 OK") -> bytes:
    return "\r\n".join([status, *lines, "", ""]).encode()


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in chunks) + b"0\r\n\r\n"


def test_a_body_of_known_length() -> None:
    data = head("Content-Length: 5", "X-One: a", "x-one: b") + b"hello"
    found = fed(data)
    assert found.done
    assert found.keeps_open
    assert (found.status, found.reason, bytes(found.body)) == (200, "OK", b"hello")
    assert found.headers["X-ONE"] == "a, b"
    assert found.wire_bytes == len(data)


def test_the_framing_of_chunks_was_on_the_wire_too() -> None:
    data = head("Transfer-Encoding: chunked") + chunked(b"he", b"llo")
    found = fed(data)
    assert bytes(found.body) == b"hello"
    assert found.keeps_open
    assert found.wire_bytes == len(data)


def test_extensions_and_trailers_of_chunks_are_passed_over() -> None:
    body = b"5;name=value\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"
    found = fed(head("Transfer-Encoding: chunked") + body)
    assert (bytes(found.body), found.keeps_open) == (b"hello", True)


def test_a_body_may_end_with_the_connection() -> None:
    found = fed(head() + b"hel", b"lo", b"")
    assert found.done
    assert bytes(found.body) == b"hello"
    assert not found.keeps_open


@pytest.mark.parametrize(
    ("method", "status"),
    [("HEAD", "HTTP/1.1 200 OK"), ("GET", "HTTP/1.1 204 No Content"), ("GET", "HTTP/1.1 304 X")],
)
def test_some_answers_have_no_body_whatever_they_say(method: str, status: str) -> None:
    found = fed(head("Content-Length: 5", status=status), method=method)
    assert found.done
    assert found.body == b""


def test_interim_answers_are_passed_over_and_counted() -> None:
    interim = head(status="HTTP/1.1 100 Continue")
    data = head("Content-Length: 0", status="HTTP/1.1 201 Created")
    found = fed(interim + data)
    assert (found.status, found.wire_bytes) == (201, len(interim + data))


@pytest.mark.parametrize(
    ("line", "status", "kept"),
    [
        ("Connection: close", "HTTP/1.1 200 OK", False),
        ("Connection: Keep-Alive", "HTTP/1.0 200 OK", True),
        ("Server: x", "HTTP/1.0 200 OK", False),
        ("Server: x", "HTTP/1.1 200", True),
    ],
)
def test_whether_the_connection_is_kept(line: str, status: str, kept: bool) -> None:
    found = fed(head(line, "Content-Length: 0", status=status))
    assert found.keeps_open is kept


def test_what_follows_the_answer_is_not_its_own_and_ends_the_connection() -> None:
    data = head("Content-Length: 2") + b"ok"
    found = fed(data + b"HTTP/1.1 200 OK")
    assert (bytes(found.body), found.wire_bytes, found.keeps_open) == (b"ok", len(data), False)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "status line"),
        (b"HTTP/2 200\r\n\r\n", "status line"),
        (head("Content-Length: many"), "content length"),
        (head("Content-Length: 5", "Content-Length: 6"), "content length"),
        (head("Content-Length: 10001"), "too large"),
        (head("Transfer-Encoding: gzip, chunked"), "transfer encoding"),
        (head("Transfer-Encoding: chunked") + b"five\r\n", "size of a chunk"),
        (head("Transfer-Encoding: chunked") + b"5\r\nhello!\r\n", "longer than its size"),
        (head("Transfer-Encoding: chunked") + b"ffffff\r\n", "too large"),
        (head("Transfer-Encoding: chunked") + b"1" * 5000, "too long"),
        (head() + b"x" * 10_001, "too large"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000, "too long"),
    ],
)
def test_what_is_no_answer_is_told(data: bytes, problem: str) -> None:
    with pytest.raises(MalformedResponse, match=problem):
        fed(data)


@pytest.mark.parametrize("cut", [1, 10, 40, 57])
def test_an_end_in_the_middle_is_told(cut: int) -> None:
    data = head("Content-Length: 20", "Server: x") + b"half of it"
    with pytest.raises(MalformedResponse, match="in the middle"):
        fed(data[:cut], b"")


@settings(deadline=None)
@given(
    st.lists(st.binary(min_size=1, max_size=300), max_size=5),
    st.sampled_from(["length", "chunks", "close"]),
    st.lists(st.integers(0, 2000), max_size=12),
)
def test_it_does_not_matter_how_the_bytes_arrive(
    chunks: list[bytes], kind: str, cuts: list[int]
) -> None:
    body = b"".join(chunks)
    data = {
        "length": head(f"Content-Length: {len(body)}") + body,
        "chunks": head("Transfer-Encoding: chunked") + chunked(*chunks),
        "close": head() + body,
    }[kind]
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    parts = [data[begin:end] for begin, end in pairwise(places)]
    found = fed(*parts, *([b""] if kind == "close" else []))
    assert found.done
    assert bytes(found.body) == body
    assert found.wire_bytes == len(data)


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=6))
def test_garbage_is_an_answer_or_no_answer_and_nothing_else(parts: list[bytes]) -> None:
    incoming = Incoming("GET", _MOST)
    try:
        for part in [b"HTTP/1.1 200 OK\r\n", *parts, b""]:
            if not incoming.done:
                incoming.feed(part)
        outcome = "answer"
    except MalformedResponse:
        outcome = "none"
    assert incoming.done is (outcome == "answer")
