"""The worker: claims jobs and runs their handlers. One running part per file."""

from trunkline.worker.entry import run_worker
from trunkline.worker.options import WorkerOptions
from trunkline.worker.worker import Worker

__all__ = ["Worker", "WorkerOptions", "run_worker"]
