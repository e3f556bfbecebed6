"""A worker of this profile alone: ``python -m trunkline.profiles.clinical``.

WORKER_CONCURRENCY is how many jobs run at once (50), WORKER_NAME_PREFIX how its id begins; an id is
another one at every start. The rest is that of `trunkline.profiles.clinical.app`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from trunkline.errors import ProfileError, TrunklineError
from trunkline.worker import WorkerOptions, run_worker


def options(environment: Mapping[str, str]) -> WorkerOptions:
    """How the worker runs."""
    concurrency = environment.get("WORKER_CONCURRENCY") or "50"
    if not concurrency.isdecimal():
        raise ProfileError(
            f"WORKER_CONCURRENCY is {concurrency!r}", hint="Set it to a whole number from 1 on."
        )
    return WorkerOptions(
        app_path="trunkline.profiles.clinical.app:app",
        concurrency=int(concurrency),
        name=environment.get("WORKER_NAME_PREFIX") or None,
        log_format=environment.get("WORKER_LOG") or "json",
    )


if __name__ == "__main__":
    try:
        sys.exit(run_worker(options(os.environ)))
    except TrunklineError as error:
        sys.exit(f"{error}\nHint: {error.hint}\nCode: {error.code}")
