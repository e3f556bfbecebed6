"""Celery's worker, run in its own environment."""

import os

from bench.apps.slate import WORK_SECONDS
from bench.rivals.celery_app import app

# Its guide recommends a pool that fits the jobs: one at a time in the main thread is fastest for
# no-op jobs, and much slower than threads for jobs that wait.
_POOL = ["--pool=threads", "--concurrency=10"] if WORK_SECONDS else ["--pool=solo"]

if __name__ == "__main__":
    # It ends on SIGTERM by itself.
    app.worker_main(
        [
            "worker",
            *_POOL,
            f"--hostname=worker-{os.getpid()}@%h",
            "--loglevel=ERROR",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )
