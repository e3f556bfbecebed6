"""Celery's worker, run in its own environment."""

import os

from bench.apps.slate import WORK_SECONDS
from bench.rivals.celery_app import app

# Its advice is to choose the pool by what jobs do: one at a time in the main thread is quickest
# where they do nothing, and much slower than threads where they wait.
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
