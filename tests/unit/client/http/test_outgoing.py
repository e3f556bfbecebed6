"""Requests as they are sent, and what cannot be one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.client.http.outgoing import Target, outgoing
from trunkline.errors import InvalidArgument


def lines(*arguments: Any, **options: Any) -> list[str]:
    sent = outgoing(*arguments, **options).data
    return sent.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")


def test_a_plain_request() -> None:
    made = outgoing("get", "http://example.com/a b?q=ä&x=%20#part")
    assert made.target == Target(False, "example.com", 80)
    first, *rest = lines("get", "http://example.com/a b?q=ä&x=%20#part")
    assert first == "GET /a%20b?q=%C3%A4&x=%20 HTTP/1.1"
    assert rest[0] == "Host: example.com"
    assert not any(line.startswith("Content-") for line in rest)


@pytest.mark.parametrize(
    ("url", "target", "host"),
    [
        ("https://api.example.com", Target(True, "api.example.com", 443), "api.example.com"),
        ("http://localhost:8080/x", Target(False, "localhost", 8080), "localhost:8080"),
        ("http://[::1]:8080/x", Target(False, "::1", 8080), "[::1]:8080"),
        ("https://bücher.example/", Target(True, "xn--bcher-kva.example", 443), None),
    ],
)
def test_where_it_goes(url: str, target: Target, host: str | None) -> None:
    assert outgoing("GET", url).target == target
    assert f"Host: {host or target.host}" in lines("GET", url)


@pytest.mark.parametrize(
    ("body", "kind", "sent"),
    [
        ({"json": {"a": [1, None]}}, "application/json", b'{"a":[1,null]}'),
        ({"data": b"\x00\xff"}, "application/octet-stream", b"\x00\xff"),
        ({"data": "grün"}, "text/plain; charset=utf-8", "grün".encode()),
        (
            {"data": {"a": "1 2", "b": [3, 4]}},
            "application/x-www-form-urlencoded",
            b"a=1+2&b=3&b=4",
        ),
    ],
)
def test_bodies(body: dict[str, Any], kind: str, sent: bytes) -> None:
    made = outgoing("POST", "http://x/", **body)
    assert made.data.endswith(b"\r\n\r\n" + sent)
    assert f"Content-Type: {kind}" in lines("POST", "http://x/", **body)
    assert f"Content-Length: {len(sent)}" in lines("POST", "http://x/", **body)


def test_a_post_without_a_body_says_so() -> None:
    assert "Content-Length: 0" in lines("POST", "http://x/")


def test_headers_of_the_caller_replace_ours() -> None:
    found = lines("POST", "http://x/", json={}, headers={"content-type": "a/b", "X-Key": "k"})
    assert "Content-Type: a/b" in found
    assert "X-Key: k" in found
    assert sum(line.lower().startswith("content-type") for line in found) == 1


@pytest.mark.parametrize(
    ("arguments", "options", "argument"),
    [
        (("GET /", "http://x/"), {}, "method"),
        (("GET", "ftp://x/"), {}, "url"),
        (("GET", "x/y"), {}, "url"),
        (("GET", "http://"), {}, "url"),
        (("GET", "http://x:port/"), {}, "url"),
        (("GET", None), {}, "url"),
        (("GET", "http://user:secret@x/"), {}, "url"),
        (("GET", "http://x/"), {"headers": {"A\r\nB": "c"}}, "headers"),
        (("GET", "http://x/"), {"headers": {"A": "secret\r\nB: c"}}, "headers"),
        (("GET", "http://x/"), {"headers": {"Transfer-Encoding": "chunked"}}, "headers"),
        (("GET", "http://x/"), {"headers": {"A": "secret €"}}, "headers"),
        (("POST", "http://x/"), {"json": object()}, "json"),
        (("POST", "http://x/"), {"data": 5}, "data"),
        (("POST", "http://x/"), {"data": "a", "json": 1}, "json and data"),
    ],
)
def test_what_is_no_request_is_refused_without_a_secret(
    arguments: tuple[Any, ...], options: dict[str, Any], argument: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        outgoing(*arguments, **options)
    assert caught.value.detail["argument"] == argument
    assert "secret" not in f"{caught.value} {caught.value.hint}"


def test_keys_in_a_query_are_not_shown() -> None:
    assert outgoing("GET", "https://x.example/v1?key=secret").place == "https://x.example/v1"


@settings(deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_nothing_smuggles_a_line_into_the_request(path: str, value: str) -> None:
    try:
        made = outgoing("GET", f"http://example.com/{path}", headers={"X-Value": value})
    except InvalidArgument:
        made = outgoing("GET", "http://example.com/")
    head = made.data.partition(b"\r\n\r\n")[0]
    names = [line.partition(b":")[0] for line in head.split(b"\r\n")[1:]]
    assert set(names) <= {b"Host", b"User-Agent", b"Accept", b"X-Value"}
    assert head.count(b"\n") == len(names)
