"""Which requests of a redirect keep their credentials, and how names are resolved in time."""

import socket
import threading
from typing import Any

import httpcore2
import httpx2
import pytest

from trunkline.handler.http.dial import dial
from trunkline.handler.http.exchange import Exchange
from trunkline.handler.http.journey import journey_of


@pytest.mark.parametrize(
    ("first", "then", "kept"),
    [
        ("http://a.example/", "https://a.example/", True),
        ("https://a.example/", "https://a.example:443/x", True),
        ("https://A.example/", "https://a.example/", True),
        ("https://a.example/", "http://a.example/", False),
        ("http://a.example:8080/", "https://a.example/", False),
        ("https://a.example/", "https://a.example:8443/", False),
        ("https://a.example/", "https://b.a.example/", False),
        ("https://b.a.example/", "https://a.example/", False),
    ],
)
def test_credentials_stay_on_the_same_server_or_its_encrypted_port(
    first: str, then: str, kept: bool
) -> None:
    request = httpx2.Request("GET", first, headers={"X-Api-Key": "secret", "Accept": "*/*"})
    journey = journey_of(request)
    redirect = httpx2.Request(
        "GET", then, headers=request.headers, extensions=dict(request.extensions)
    )
    assert journey_of(redirect) is journey
    assert ("x-api-key" in redirect.headers) is kept
    assert redirect.headers["accept"] == "*/*"


def timeouts(seconds: float) -> dict[str, float | None]:
    return dict.fromkeys(("connect", "read", "write", "pool"), seconds)


def test_rf_76_a_name_that_nobody_resolves_ends_with_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The resolver of the system takes no timeout."""
    ended = threading.Event()

    def resolve(*_: Any, **__: Any) -> list[Any]:
        ended.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(httpcore2.ConnectTimeout):
        dial(httpcore2.SyncBackend(), "slow.example", 80, Exchange(timeouts(0.2), 0.0))
    ended.set()


def test_a_name_without_an_address_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror("unknown name")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(httpcore2.ConnectError, match="unknown name"):
        dial(httpcore2.SyncBackend(), "unknown.example", 80, Exchange(timeouts(5), 0.0))
