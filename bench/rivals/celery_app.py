"""Celery's application, run in its own environment: its job and its settings."""

import os
import time

from celery import Celery  # type: ignore[import-not-found, unused-ignore]

from bench.apps.slate import WORK_SECONDS, open_slate

__all__ = ["app", "noop"]

app = Celery("bench", broker=os.environ["CELERY_BROKER_URL"])
app.conf.update(
    # Remove a message when its job has ended, not when it has begun, as the other products do.
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=10,
    worker_hijack_root_logger=False,
    broker_pool_limit=10,
)


@app.task(name="noop")  # type: ignore[untyped-decorator, unused-ignore]
def noop(number: int) -> None:
    """Record that it ran."""
    open_slate().note(number)
    if WORK_SECONDS:
        time.sleep(WORK_SECONDS)
