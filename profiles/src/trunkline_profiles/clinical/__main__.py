"""A worker of this profile alone: ``python -m trunkline_profiles.clinical``.

WORKER_CONCURRENCY is how many jobs run at once (50), WORKER_NAME_PREFIX how its id begins, and
WORKER_GRACE_SECONDS what running jobs get to end after SIGTERM (30) before they are handed back. An
id is another one at every start. The rest is that of `trunkline_profiles.clinical.app`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from trunkline.errors import ProfileError, TrunklineError
from trunkline.worker import WorkerOptions, run_worker


def options(environment: Mapping[str, str]) -> WorkerOptions:
    """How the worker runs."""
    numbers = {}
    for variable, default in {"WORKER_CONCURRENCY": "50", "WORKER_GRACE_SECONDS": "30"}.items():
        given = environment.get(variable) or default
        if not given.isdecimal():
            raise ProfileError(f"{variable} is {given!r}", hint="Set it to a whole number.")
        numbers[variable] = int(given)
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
