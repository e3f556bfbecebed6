"""The HTTP API in a process beside workers, for ``trunkline up``."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from trunkline.db.dsn import DSN_VARIABLE

__all__ = ["api_is_installed", "beside"]

_PACKAGES: Final = ("starlette", "uvicorn", "jwt", "prometheus_client", "httpx2")
_STOP: Final = 10.0


def api_is_installed() -> bool:
    """Return whether the packages of the extra `api` are there; none is imported."""
    return all(importlib.util.find_spec(name) is not None for name in _PACKAGES)


@contextmanager
def beside(dsn: str, *, log_format: str, log_level: str) -> Iterator[None]:
    """Run `trunkline api` until the end of the block.

    It has a process of its own: a handler that keeps the event loop of a worker busy must not delay
    requests. The connection string goes through the environment, where other users cannot read it.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "trunkline", "api", "--log", log_format, "--log-level", log_level],
        env={**os.environ, DSN_VARIABLE: dsn},
    )
    try:
        yield
    finally:
        # Ctrl-C in a terminal has reached it too.
        process.terminate()
        try:
            process.wait(_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
