"""Real processes that use an embedded server, controlled through their pipes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from tests.support.waiting import DEADLINE

REPOSITORY = Path(__file__).parents[2]

# Uses the server, prints its properties as a JSON line, and exits when its standard input ends.
_USER = """
import json, os, sys
import psycopg

from tests.support.waiting import DEADLINE
from trunkline.embedded import acquire
with acquire(sys.argv[1]) as server:
    with psycopg.connect(server.dsn) as connection:
        role = connection.execute("select current_user").fetchone()[0]
    print(json.dumps({"postmaster": server.pid, "dsn": server.dsn, "role": role}), flush=True)
    sys.stdin.read()
"""


class User:
    """A process that uses the server in ``home`` until `leave` or `kill`."""

    def __init__(
        self,
        home: Path,
        *,
        python: str = sys.executable,
        uid: int | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [python, "-c", _USER, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (environment or {}),
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()
        if self.process.stdout:
            self.process.stdout.close()

    def report(self) -> dict[str, str | int]:
        """Wait until the process uses the server, and return its JSON line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the process ended with {self.process.wait()} and printed nothing"
        properties: dict[str, str | int] = json.loads(line)
        return properties

    def leave(self) -> int:
        """Close its standard input, and wait for its end."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        return self.process.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def trunkline(
    home: Path, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process with only the given folder."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")
    }
    return subprocess.run(
        [sys.executable, "-c", "from trunkline.cli.main import main; main()", *arguments],
        env=inherited | {"TRUNKLINE_HOME": str(home)} | (environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def package_path() -> str:
    """Return a PYTHONPATH with our package and its dependencies for another interpreter."""
    site = Path(psycopg.__file__).parents[1]
    return os.pathsep.join([str(REPOSITORY / "src"), str(site)])


def interpreter_for(uid: int) -> tuple[str | None, str]:
    """Return an interpreter that this account can run with our packages, or the reasons."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    reasons = []
    for python in (sys.executable, f"/usr/bin/{version}"):
        reason = _obstacle([python, "-c", "import psycopg, trunkline.embedded"], uid)
        if reason is None:
            return python, ""
        reasons.append(f"{python}: {reason}")
    return None, "; ".join(reasons)


def _obstacle(command: Sequence[str], uid: int) -> str | None:
    try:
        result = subprocess.run(
            command,
            env={"PYTHONPATH": package_path(), "PYTHONDONTWRITEBYTECODE": "1"},
            user=uid,
            group=uid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return str(error)
    return None if result.returncode == 0 else result.stderr.strip().splitlines()[-1]


def until(condition: Callable[[], bool], what: str, timeout: float = DEADLINE) -> None:
    """Wait until another process fulfils the condition; fail after the timeout."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.05)
