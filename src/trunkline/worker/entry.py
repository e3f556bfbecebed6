"""The entry point of `trunkline worker`: one worker process, or several under a supervisor."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import Final

from trunkline.client import load
from trunkline.db.dsn import DSN_VARIABLE, resolve
from trunkline.telemetry import count, set_up_logging
from trunkline.worker.options import WorkerOptions
from trunkline.worker.supervisor import Supervisor, end_with_parent
from trunkline.worker.worker import Worker

__all__ = ["WorkerOptions", "run_one", "run_worker"]

# How long handlers may take to react to their cancellation before the process exits.
_LAST_CALL: Final = 2.0

_log = logging.getLogger("trunkline.worker")


def run_worker(options: WorkerOptions) -> int:
    """Run until stopped and return the exit code."""
    set_up_logging(options.log_format, options.log_level)
    if options.dsn is not None:
        # Handlers enqueue through the application, also in child processes. Without this, an
        # application that names no server would store their jobs in the embedded one.
        os.environ[DSN_VARIABLE] = options.dsn
    if options.processes > 1 or options.memory_limit is not None:
        # Loaded here too, so that an error in the application or a missing connection string is
        # reported once, not by every child. An embedded server stays up between two children.
        app = load(options.app_path)
        with resolve(app.dsn if options.dsn is None else options.dsn, embedded=app.embedded):
            return Supervisor(options).run()
    return run_one(options)


def run_one(options: WorkerOptions, *, parent: int | None = None) -> int:
    """Run one worker in this process."""
    app = load(options.app_path)

    async def main() -> int:
        worker = Worker(app, options, supervised=parent is not None)
        if parent is not None:
            end_with_parent(parent, worker.stop)
        return await worker.run()

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        code = runner.run(main())
        _end_stubborn_handlers(runner.get_loop(), code)
        return code


def _end_stubborn_handlers(loop: asyncio.AbstractEventLoop, code: int) -> None:
    """Exit the process if handlers ignore their cancellation: the loop would wait for them."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        _, stubborn = loop.run_until_complete(asyncio.wait(tasks, timeout=_LAST_CALL))
        if stubborn:
            _log.warning("%s ignored cancellation; exiting anyway", count(len(stubborn), "handler"))
            logging.shutdown()
            os._exit(code)


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    """Return uvloop if it is installed: 5 to 15 % less processor time per job."""
    if sys.platform == "win32":
        return asyncio.SelectorEventLoop
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return uvloop.new_event_loop  # type: ignore[return-value]
