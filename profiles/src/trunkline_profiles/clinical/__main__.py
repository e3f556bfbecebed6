"""A worker for this profile only: ``python -m trunkline_profiles.clinical``.

WORKER_CONCURRENCY is how many jobs run at once (50). WORKER_NAME_PREFIX is the start of its id,
which is new at every start. WORKER_GRACE_SECONDS is how long running jobs may continue after
SIGTERM (30) before they are handed back. `trunkline_profiles.clinical.app` describes the other
variables.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from trunkline.errors import ProfileError, TrunklineError
from trunkline.worker import WorkerOptions, run_worker


def options(environment: Mapping[str, str]) -> WorkerOptions:
    """Options of the worker."""
    numbers = {}
    for variable, default in {"WORKER_CONCURRENCY": "50", "WORKER_GRACE_SECONDS": "30"}.items():
        value = environment.get(variable) or default
        if not value.isdecimal():
            raise ProfileError(f"{variable} is {value!r}", hint="Set it to a whole number.")
        numbers[variable] = int(value)
    return WorkerOptions(
        app_path="trunkline_profiles.clinical.app:app",
        concurrency=numbers["WORKER_CONCURRENCY"],
        name=environment.get("WORKER_NAME_PREFIX") or None,
        grace=numbers["WORKER_GRACE_SECONDS"],
        log_format="json",
    )


if __name__ == "__main__":
    try:
        sys.exit(run_worker(options(os.environ)))
    except TrunklineError as error:
        sys.exit(f"{error}\nHint: {error.hint}\nCode: {error.code}")
