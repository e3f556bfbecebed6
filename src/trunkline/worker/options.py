"""The options of a worker."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass, field

from trunkline.errors import InvalidOptions

__all__ = ["WorkerOptions", "new_worker_id"]


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Everything the command line and `Worker` can say; the defaults suit most."""

    # `module:variable` of the application; the command line's argument.
    app_path: str = ""
    # Queues in the order in which they are served; None serves all of them.
    queues: tuple[str, ...] | None = None
    # Only these tasks of the application; None serves all of them.
    tasks: tuple[str, ...] | None = None
    # How many jobs run at once in one process.
    concurrency: int = 10
    # Worker processes under one supervisor.
    processes: int = 1
    # How many handlers that are plain functions run at once; None means as many as `concurrency`.
    threads: int | None = None
    # Bytes of resident memory above which a process drains and is replaced.
    memory_limit: int | None = None
    # Seconds that running jobs have to end after SIGTERM.
    grace: float = 30.0
    dsn: str | None = field(default=None, repr=False)
    # Where LISTEN works, if `dsn` leads through a pooler in transaction mode.
    listen_dsn: str | None = field(default=None, repr=False)
    log_format: str = "console"
    log_level: str = "info"
    # Prefix of the worker's id; by default the name of the host.
    name: str | None = None

    def __post_init__(self) -> None:
        """Refuse options with which the worker would do nothing."""
        at_least_one = {"concurrency": self.concurrency, "processes": self.processes}
        if self.threads is not None:
            at_least_one["threads"] = self.threads
        for option, value in at_least_one.items():
            if value < 1:
                raise InvalidOptions(f"{option} is {value}", hint="Pass 1 or more.")
        if not self.grace >= 0:
            raise InvalidOptions(f"grace is {self.grace}", hint="Pass 0 or more seconds.")
        for option, names in {"queues": self.queues, "tasks": self.tasks}.items():
            if names is not None and not (names and isinstance(names, (tuple, list))):
                raise InvalidOptions(
                    f"{option} is {names!r}", hint="Pass names in a tuple, or None for all."
                )


def new_worker_id(name: str | None) -> str:
    """Return a readable id that is unique to this start of the process."""
    host = name or socket.gethostname().partition(".")[0] or "worker"
    return f"{host[:100]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
