"""Credentials go to the host that the handler names, to no other and to no proxy."""

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.support.http_server import Answer, Server, answer
from tests.unit.handler.conftest import LINK, Send, unlimited
from tests.worker.scene import a_job
from trunkline.handler.grants import SyncConnections, SyncGrants

CREDENTIALS = {
    "Authorization": "Bearer secret-1",
    "X-Api-Key": "secret-2",
    "Cookie": "session=secret-3",
    "Proxy-Authorization": "Basic secret-4",
}


def to(url: str, status: str = "302 Found") -> Answer:
    return answer(b"", f"Location: {url}", status=status)


def slow(reply: Answer, seconds: float) -> Answer:
    """Answers after a while, as a slow provider does."""

    def later(connection: socket.socket, request: bytes) -> bool:
        threading.Event().wait(seconds)
        return reply(connection, request)

    return later


@pytest.fixture
def connections() -> Iterator[SyncConnections]:
    made = SyncConnections()
    yield made
    made.close()


def test_a_request_that_is_sent_again_has_its_whole_time_again(
    connections: SyncConnections,
) -> None:
    client = SyncGrants(LINK, a_job(), None, connections).http_client(unlimited())
    with Server(*[slow(answer(), 0.8)] * 3) as server:
        request = client.build_request("GET", server.url, headers=CREDENTIALS, timeout=2)
        for _ in range(3):
            assert client.send(request).is_success
    assert b"secret-1" in server.requests[2]


def elsewhere(server: Server, host: str = "127.0.0.1") -> str:
    """Another name of this machine, which is another host to a client."""
    return f"http://{host}:{server.port}/next"


@pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect", "308 Permanent"])
def test_a_redirect_to_another_host_carries_no_credentials(send: Send, status: str) -> None:
    headers = {name: value for name, value in CREDENTIALS.items() if name != "Cookie"}
    with Server() as other, Server(to(elsewhere(other), status)) as server:
        found = send(
            "POST",
            server.url,
            headers={**headers, "Accept": "text/plain"},
            cookies={"jar": "secret-5"},
            json={"question": 1},
            follow_redirects=True,
        )
    assert (found.status_code, len(found.history)) == (200, 1)
    assert b"secret-1" in server.requests[0]
    assert b"secret-5" in server.requests[0]
    assert b"secret" not in other.requests[0]
    assert b"Accept: text/plain" in other.requests[0]
    assert (b"question" in other.requests[0]) == (status != "302 Found")


def test_another_port_of_the_same_host_is_another_server(send: Send) -> None:
    with Server() as other, Server(to(elsewhere(other, "localhost"))) as server:
        send("GET", server.url, headers=CREDENTIALS, follow_redirects=True)
    assert b"secret" not in other.requests[0]


def test_credentials_do_not_come_back_on_the_way_back(send: Send) -> None:
    """The other host could choose any address of the first one."""
    with Server() as server:
        home = f"http://localhost:{server.port}/chosen?by=other"
        with Server(to(home)) as other, Server(to(elsewhere(other))) as first:
            send("GET", first.url, headers=CREDENTIALS, follow_redirects=True)
    assert b"secret" not in server.requests[0]


def test_a_redirect_on_the_same_server_keeps_them(send: Send) -> None:
    with Server(to("/elsewhere")) as server:
        send("GET", server.url, headers=CREDENTIALS, follow_redirects=True)
    assert b"secret-1" in server.requests[1]
    assert b"secret-2" in server.requests[1]


def test_the_request_of_a_redirect_that_the_handler_sends_carries_none(
    connections: SyncConnections,
) -> None:
    with Server() as other, Server(to(elsewhere(other))) as server:
        client = SyncGrants(LINK, a_job(), None, connections).http_client(unlimited())
        found = client.get(server.url, headers=CREDENTIALS)
        assert found.next_request is not None
        client.send(found.next_request)
    assert b"secret" not in other.requests[0]


def test_a_redirect_loop_ends(send: Send) -> None:
    with Server(*[to("/v1")] * 50) as server, pytest.raises(httpx2.TooManyRedirects):
        send("GET", server.url, follow_redirects=True)
    assert len(server.requests) <= 21


def test_rf_76_redirects_share_one_total_timeout(send: Send) -> None:
    """Each of them takes less than the timeout; the 21 that are followed would take more."""
    with Server(*[slow(to("/v1"), 0.2)] * 50) as server, pytest.raises(httpx2.TimeoutException):
        send("GET", server.url, follow_redirects=True, timeout=2)
    assert len(server.requests) >= 2


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("lower", [False, True])
def test_proxy_variables_are_ignored(
    send: Send, monkeypatch: pytest.MonkeyPatch, name: str, lower: bool
) -> None:
    """A proxy that the environment names would see every credential."""
    with Server() as proxy, Server() as server:
        monkeypatch.setenv(name.lower() if lower else name, f"http://127.0.0.1:{proxy.port}")
        assert send("GET", server.url, headers=CREDENTIALS).text == "ok"
    assert proxy.requests == []
    assert len(server.requests) == 1


def test_a_certificate_of_an_unknown_authority_is_refused(send: Send, tls: ssl.SSLContext) -> None:
    with (
        Server(tls=tls) as server,
        pytest.raises(httpx2.ConnectError, match=r"(?i)certificate") as caught,
    ):
        send("GET", server.url, headers=CREDENTIALS)
    assert server.requests == []
    assert "secret" not in str(caught.value)


def test_a_certificate_of_another_host_is_refused(
    send: Send, tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "certificate.pem"))
    with (
        Server(tls=tls) as server,
        pytest.raises(httpx2.ConnectError, match=r"(?i)certificate|hostname"),
    ):
        send("GET", f"https://127.0.0.1:{server.port}/", headers=CREDENTIALS)
    assert server.requests == []


def test_the_authority_of_ssl_cert_file_is_trusted(
    send: Send, tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted above TLS: what the provider bills."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "certificate.pem"))
    with Server(tls=tls) as server:
        found = send("GET", server.url)
        assert send("GET", server.url).text == "ok"
    assert server.connections == 1
    assert found.extensions["wire_bytes"] == len(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
