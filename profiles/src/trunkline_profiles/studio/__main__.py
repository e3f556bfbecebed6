"""A pool of workers for one kind of tasks: ``python -m trunkline_profiles.studio text``.

The pools are text, pdf, audio and final. Each serves one type, five tasks at once, and a free slot
claims again without waiting for the others. WORKER_CONCURRENCY, WORKER_NAME_PREFIX and
WORKER_GRACE_SECONDS change the defaults; `trunkline_profiles.studio.app` describes the other
variables.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from trunkline.errors import ProfileError, TrunklineError
from trunkline.worker import WorkerOptions, run_worker

POOLS: Final = {
    "text": ("studio", "text_generation"),
    "pdf": ("studio", "pdf_generation"),
    "audio": ("studio", "audio_generation"),
    "final": ("studio-final", "finalize_job"),
}


def options(arguments: Sequence[str], environment: Mapping[str, str]) -> WorkerOptions:
    """Options of the worker of a pool."""
    if len(arguments) != 1 or arguments[0] not in POOLS:
        raise ProfileError(
            "Name one pool", hint=f"The pools are {', '.join(POOLS)}, each for one type of task."
        )
    queue, task = POOLS[arguments[0]]
    numbers = {}
    for variable, default in {"WORKER_CONCURRENCY": "5", "WORKER_GRACE_SECONDS": "30"}.items():
        value = environment.get(variable) or default
        if not value.isdecimal():
            raise ProfileError(f"{variable} is {value!r}", hint="Set it to a whole number.")
        numbers[variable] = int(value)
    return WorkerOptions(
        app_path="trunkline_profiles.studio.app:app",
        queues=(queue,),
        tasks=(task,),
        concurrency=numbers["WORKER_CONCURRENCY"],
        name=environment.get("WORKER_NAME_PREFIX") or f"studio-{arguments[0]}",
        grace=numbers["WORKER_GRACE_SECONDS"],
        log_format=environment.get("WORKER_LOG_FORMAT") or "json",
    )


if __name__ == "__main__":
    try:
        sys.exit(run_worker(options(sys.argv[1:], os.environ)))
    except TrunklineError as error:
        sys.exit(f"{error}\nHint: {error.hint}\nCode: {error.code}")
