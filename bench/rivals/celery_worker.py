"""Celery's worker, run in its own environment."""

import os
import sys

if os.environ.get("T_POOLK")=="gevent":
    from gevent import monkey; monkey.patch_all()

from bench.rivals.celery_app import app

if __name__ == "__main__":
    app.worker_main(
        [
            "worker",
            f"--pool={os.environ.get('T_POOLK','threads')}",
            f"--concurrency={os.environ.get('T_CONC','10')}",
            f"--hostname=worker-{os.getpid()}@%h",
            "--loglevel=ERROR",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            *os.environ.get("T_MORE","").split(),
        ]
    )
