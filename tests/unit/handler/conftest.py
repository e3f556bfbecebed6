"""Asynchronous and blocking clients without limits, which never call an engine."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvloop

from tests.worker.scene import a_job
from trunkline.handler.grants import AsyncConnections, AsyncGrants, SyncConnections, SyncGrants
from trunkline.handler.http.terms import terms

Send = Callable[..., httpx2.Response]
LINK: Any = None


def unlimited(*, raise_for_limit: bool = True) -> Any:
    return terms(
        limit=False,
        keys=None,
        tokens=None,
        requests=1,
        units=None,
        wait=None,
        settle=None,
        raise_for_limit=raise_for_limit,
    )


@pytest.fixture(params=["loop", "uvloop", "thread"])
def send(request: pytest.FixtureRequest) -> Iterator[Send]:
    """Return a function that sends a request with a new client over kept connections."""
    if request.param == "thread":
        connections = SyncConnections()
        grants = SyncGrants(LINK, a_job(), None, connections)

        def call(
            *arguments: Any, raise_for_limit: bool = True, cookies: Any = None, **options: Any
        ) -> httpx2.Response:
            client = grants.http_client(unlimited(raise_for_limit=raise_for_limit))
            client.cookies.update(cookies)
            return client.request(*arguments, **options)

        yield call
        connections.close()
        return
    factory = uvloop.new_event_loop if request.param == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        kept = AsyncConnections()
        calls = AsyncGrants(LINK, a_job(), None, kept)

        async def wait(response: Awaitable[httpx2.Response]) -> httpx2.Response:
            return await response

        def run(
            *arguments: Any, raise_for_limit: bool = True, cookies: Any = None, **options: Any
        ) -> httpx2.Response:
            client = calls.http_client(unlimited(raise_for_limit=raise_for_limit))
            client.cookies.update(cookies)
            return runner.run(wait(client.request(*arguments, **options)))

        yield run
        runner.run(kept.close())


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that no authority has signed, with its key."""
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


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    return context
