"""Real worker processes, started with the command line."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.support.processes import REPOSITORY
from tests.support.waiting import DEADLINE, until

__all__ = ["WorkerProcess", "descendants", "lives"]


class WorkerProcess:
    """``trunkline worker APP`` with all its child processes, in a separate session."""

    def __init__(self, app: str, *options: str, environment: dict[str, str], log: Path) -> None:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")
        }
        self.log_path = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    "from trunkline.cli.main import main; main()",
                    "worker",
                    app,
                    "--log",
                    "json",
                    *options,
                ],
                cwd=REPOSITORY,
                env=inherited | {"PYTHONPATH": str(REPOSITORY), **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    @property
    def records(self) -> list[dict[str, Any]]:
        """The log lines that are JSON objects."""
        records = []
        for line in self.log.splitlines():
            with suppress(ValueError):
                record = json.loads(line)
                if isinstance(record, dict):
                    records.append(record)
        return records

    def says(self, *words: str) -> bool:
        """Whether a line of the log contains all these words."""
        return any(all(word in line for word in words) for line in self.log.splitlines())

    def until_ready(self, observer: psycopg.Connection[Any], processes: int = 1) -> list[str]:
        """Wait until `processes` of its processes are registered; return their names."""

        def names() -> list[str]:
            self.require_alive()
            rows = observer.execute(
                "select worker from trunkline.workers where pid = any(%s) and state = 'active' "
                "and started_at > clock_timestamp() - interval '1 hour' order by worker",
                ([self.pid, *descendants(self.pid)],),
            ).fetchall()
            # A registered worker may not have started its parts yet.
            ready = sum("worker ready" in line for line in self.log.splitlines())
            return [row[0] for row in rows] if min(len(rows), ready) >= processes else []

        return until(names, f"the worker is registered; its log:\n{self.log}")

    def require_alive(self) -> None:
        assert self.process.poll() is None, (
            f"the worker ended with {self.process.returncode}:\n{self.log}"
        )

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def until_ended(self, deadline: float = DEADLINE) -> int:
        """Wait for its end and return its exit code."""
        try:
            return self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker is alive after {deadline} s:\n{self.log}") from None

    def kill(self) -> None:
        """Kill the process itself, but none of its children."""
        self.process.kill()
        self.process.wait()

    def destroy(self) -> None:
        """Kill the process and all its descendants."""
        children = descendants(self.pid)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def descendants(pid: int) -> list[int]:
    """Return the children of a process, and their descendants."""
    pids: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text(encoding="ascii").split():
                pids += [int(child), *descendants(int(child))]
    return pids


def lives(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}
