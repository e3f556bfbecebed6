"""Two real S3 servers of different make: OpenStack Swift with its s3api, and `rclone serve s3`."""

from __future__ import annotations

import configparser
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import until

__all__ = ["S3Server", "rclone", "swift"]

_BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class S3Server:
    """Where a server listens, and the credentials and the bucket to use there."""

    endpoint: str
    access_key: str
    secret_key: str
    bucket: str
    # The processes of the server, for tests that stop it.
    pids: tuple[int, ...]
    # Whether it refuses a conditional create of an object that exists.
    creates: bool = True

    def environment(self) -> dict[str, str]:
        """Return the variables that point an S3 client to this server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        }


@contextmanager
def rclone(folder: Path) -> Iterator[S3Server]:
    """Start `rclone serve s3` on a folder. Each subfolder is a bucket."""
    (folder / "files" / "artifacts").mkdir(parents=True)
    port = _free_port()
    command = [
        str(_BIN / "rclone"), "serve", "s3", "files", "--addr", f"127.0.0.1:{port}",
        "--auth-key", "access,secret", "--config", os.devnull, "--cache-dir", "cache",
    ]  # fmt: skip
    with _running(command, folder, "rclone") as process:
        _await_port(port, process)
        yield S3Server(
            f"http://127.0.0.1:{port}",
            "access",
            "secret",
            "artifacts",
            (process.pid,),
            creates=False,
        )


@contextmanager
def swift(folder: Path) -> Iterator[S3Server]:
    """Start the four processes of Swift on a folder, and create a bucket."""
    ports = {name: _free_port() for name in ("proxy", "account", "container", "object")}
    (folder / "devices" / "sdb1").mkdir(parents=True)
    for name in ("account", "container", "object"):
        builder = [str(_BIN / "swift-ring-builder"), f"{name}.builder"]
        device = f"r1z1-127.0.0.1:{ports[name]}/sdb1"
        for arguments in (["create", "4", "1", "1"], ["add", device, "1"], ["rebalance"]):
            subprocess.run([*builder, *arguments], cwd=folder, check=True, capture_output=True)
    _write(folder / "swift.conf", {"swift-hash": {"swift_hash_path_suffix": "tests"}})
    for name in ("account", "container", "object"):
        _write(folder / f"{name}.conf", _storage(folder, name, ports[name]))
    _write(folder / "proxy.conf", _proxy(folder, ports["proxy"]))
    with ExitStack() as stack:
        pids = []
        for name, port in ports.items():
            command = [str(_BIN / f"swift-{name}-server"), f"{name}.conf"]
            process = stack.enter_context(_running(command, folder, name))
            _await_port(port, process)
            pids.append(process.pid)
        server = S3Server(
            f"http://127.0.0.1:{ports['proxy']}", "test:tester", "testing", "artifacts", tuple(pids)
        )
        _create_bucket(server)
        yield server


def _storage(folder: Path, name: str, port: int) -> dict[str, dict[str, str]]:
    return {
        "DEFAULT": {
            "bind_ip": "127.0.0.1", "bind_port": str(port), "workers": "0", "mount_check": "false",
            "devices": str(folder / "devices"), "swift_dir": str(folder), "log_name": name,
            "log_address": os.devnull,
        },
        "pipeline:main": {"pipeline": f"{name}-server"},
        f"app:{name}-server": {"use": f"egg:swift#{name}"},
    }  # fmt: skip


def _proxy(folder: Path, port: int) -> dict[str, dict[str, str]]:
    names = (
        "catch_errors gatekeeper healthcheck cache bulk s3api tempauth slo versioned_writes copy"
    )
    settings = {
        "s3api": {"location": "us-east-1"},
        "tempauth": {"user_test_tester": "testing .admin"},
        "cache": {"memcache_servers": "127.0.0.1:1"},
    }
    filters = {"cache": "memcache"}
    return {
        "DEFAULT": {
            "bind_ip": "127.0.0.1", "bind_port": str(port), "workers": "0",
            "swift_dir": str(folder), "log_name": "proxy", "log_address": os.devnull,
        },
        "pipeline:main": {"pipeline": f"{names} proxy-server"},
        "app:proxy-server": {
            "use": "egg:swift#proxy", "account_autocreate": "true", "allow_account_management":
            "true",
        },
        **{
            f"filter:{name}": {"use": f"egg:swift#{filters.get(name, name)}"}
            | settings.get(name, {})
            for name in names.split()
        },
    }  # fmt: skip


def _create_bucket(server: S3Server) -> None:
    # obstore cannot create buckets, but it signs; a signed PUT of an empty path creates one.
    request = subprocess.run(
        [
            str(_BIN / "rclone"), "mkdir", "test:artifacts", "--config", os.devnull,
        ],
        env=os.environ
        | {
            "RCLONE_CONFIG_TEST_TYPE": "s3",
            "RCLONE_CONFIG_TEST_PROVIDER": "Other",
            "RCLONE_CONFIG_TEST_ENDPOINT": server.endpoint,
            "RCLONE_CONFIG_TEST_ACCESS_KEY_ID": server.access_key,
            "RCLONE_CONFIG_TEST_SECRET_ACCESS_KEY": server.secret_key,
            "RCLONE_CONFIG_TEST_REGION": "us-east-1",
        },
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert request.returncode == 0, request.stderr


@contextmanager
def _running(command: list[str], folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"SWIFT_DIR": str(folder)},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()


def _await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    def listens() -> bool:
        assert process.poll() is None, f"{process.args!r} ended with {process.returncode}"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    until(listens, f"port {port} of {process.args!r}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _write(path: Path, sections: dict[str, dict[str, str]]) -> None:
    parser = configparser.RawConfigParser(default_section="none")
    parser.read_dict(sections)
    with path.open("w") as file:
        parser.write(file)
