"""One store of each kind: a folder, and two real S3 servers that the run starts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support import s3_servers
from tests.support.s3_servers import S3Server
from tests.worker.conftest import pytest_pyfunc_call, scene, server
from trunkline.artifacts import Capabilities, LocalStore, ObjectStore, Store

# Tests of workers run as those in tests/worker do, on the newest server.
__all__ = ["KINDS", "open_bucket", "pytest_pyfunc_call", "scene", "server"]

KINDS = ["local", "swift", "rclone"]


@pytest.fixture(scope="session")
def swift(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """OpenStack Swift with its s3api."""
    with s3_servers.swift(tmp_path_factory.mktemp("swift")) as server:
        yield server


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """`rclone serve s3`: answers 200 to a range, and overwrites on a conditional create."""
    with s3_servers.rclone(tmp_path_factory.mktemp("rclone")) as server:
        yield server


def open_bucket(server: S3Server, *, secret: str | None = None, retries: int = 1) -> ObjectStore:
    """Return a store with its own prefix."""
    return ObjectStore(
        f"s3://{server.bucket}/{uuid4().hex}",
        capabilities=Capabilities(conditional_create=server.creates),
        options={
            "endpoint": server.endpoint,
            "access_key_id": server.access_key,
            "secret_access_key": secret or server.secret_key,
            "region": "us-east-1",
            "virtual_hosted_style_request": False,
        },
        client_options={"allow_http": True, "timeout": "20s"},
        retry_config={"max_retries": retries},
    )


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store of each kind, without files."""
    kind: str = request.param
    if kind == "local":
        return LocalStore(tmp_path / "files", link_base="http://links.invalid/files")
    return open_bucket(request.getfixturevalue(kind))


@pytest.fixture
def local(tmp_path: Path) -> LocalStore:
    """A store in a folder, without files."""
    return LocalStore(tmp_path / "files", link_base="http://links.invalid/files")
