"""A temporary Redis server that is as durable as the PostgreSQL server of the run."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.rivals.environment import EnvironmentMissing

__all__ = ["Redis", "ensure_redis", "open_redis", "redis_version"]

_PACKAGE = "redis-server"
_INSTALL_SECONDS = 120
_START_SECONDS = 10.0


class Redis:
    """A running server and one connection to it."""

    def __init__(self, pid: int, path: Path) -> None:
        self.pid = pid
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._answers = self._socket.makefile("rb")

    def ask(self, *words: str) -> str:
        """Return the reply to a command that replies with a number or a word."""
        parts = [f"*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in words)]
        self._socket.sendall("".join(parts).encode("ascii"))
        answer = self._answers.readline().decode("ascii").strip()
        if not answer or answer.startswith("-"):
            raise RuntimeError(f"Redis answers {' '.join(words)} with {answer or 'nothing'}")
        return answer[1:]

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


def ensure_redis() -> None:
    """Install Debian's package if it is missing and can be installed."""
    if shutil.which(_PACKAGE):
        return
    missing = f"{_PACKAGE} is not installed; on Debian: apt-get install {_PACKAGE}"
    if os.geteuid() or not shutil.which("apt-get"):
        raise EnvironmentMissing(missing)
    try:
        done = subprocess.run(
            ["apt-get", "install", "-y", "--no-install-recommends", _PACKAGE],  # noqa: S607
            check=False,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentMissing(f"{missing} took more than {_INSTALL_SECONDS} s") from None
    if done.returncode:
        raise EnvironmentMissing(f"{missing} failed: {done.stderr.strip()[-300:]}")
    # The package starts its own server, which the run does not need.
    subprocess.run(["service", _PACKAGE, "stop"], check=False, capture_output=True)  # noqa: S607


def redis_version() -> str:
    """Return the version of the installed server."""
    done = subprocess.run([_PACKAGE, "--version"], check=True, capture_output=True, text=True)
    return done.stdout.partition("v=")[2].split()[0]


@contextmanager
def open_redis() -> Iterator[Redis]:
    """Start one in a temporary folder; every write is on disk before its reply."""
    home = Path(tempfile.mkdtemp(prefix="trunkline-redis-"))
    path = home / "redis.sock"
    settings = {
        "appendfsync": "always",
        "appendonly": "yes",
        "dir": str(home),
        "port": "0",
        "save": "",
        "unixsocket": str(path),
    }
    command = [_PACKAGE, *(word for name in settings for word in (f"--{name}", settings[name]))]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        redis = _connect(process, path)
        try:
            yield redis
        finally:
            redis.close()
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(home, ignore_errors=True)


def _connect(process: subprocess.Popen[bytes], path: Path) -> Redis:
    give_up = time.monotonic() + _START_SECONDS
    while True:
        try:
            return Redis(process.pid, path)
        except OSError:
            if process.poll() is not None or time.monotonic() > give_up:
                raise
            time.sleep(0.02)
