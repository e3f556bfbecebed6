"""The names by which DBOS's producer and worker meet."""

__all__ = ["QUEUE", "WORKFLOW"]

QUEUE = "jobs"
WORKFLOW = "noop"
