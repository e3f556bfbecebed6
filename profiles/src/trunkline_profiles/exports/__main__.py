"""A worker for exports and their cleanup: ``python -m trunkline_profiles.exports``.

It renders three documents at once, which takes up to 600 MB. WORKER_CONCURRENCY,
WORKER_NAME_PREFIX, WORKER_GRACE_SECONDS and WORKER_LOG_FORMAT change the defaults;
`trunkline_profiles.exports.app` describes the other variables.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from trunkline.errors import ProfileError, TrunklineError
from trunkline.worker import WorkerOptions, run_worker
from trunkline_profiles.exports.tasks import CLEANUP_QUEUE, QUEUE


def options(environment: Mapping[str, str]) -> WorkerOptions:
    """Options of the worker."""
    numbers = {}
    for variable, default in {"WORKER_CONCURRENCY": "3", "WORKER_GRACE_SECONDS": "30"}.items():
        value = environment.get(variable) or default
        if not value.isdecimal():
            raise ProfileError(f"{variable} is {value!r}", hint="Set it to a whole number.")
        numbers[variable] = int(value)
    return WorkerOptions(
        app_path="trunkline_profiles.exports.app:app",
        queues=(QUEUE, CLEANUP_QUEUE),
        concurrency=numbers["WORKER_CONCURRENCY"],
        name=environment.get("WORKER_NAME_PREFIX") or "exports",
        grace=numbers["WORKER_GRACE_SECONDS"],
        log_format=environment.get("WORKER_LOG_FORMAT") or "json",
    )


if __name__ == "__main__":
    try:
        sys.exit(run_worker(options(os.environ)))
    except TrunklineError as error:
        sys.exit(f"{error}\nHint: {error.hint}\nCode: {error.code}")
