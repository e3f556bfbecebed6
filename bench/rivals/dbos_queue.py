"""Names that DBOS's producer and worker share."""

__all__ = ["QUEUE", "WORKFLOW"]

QUEUE = "jobs"
WORKFLOW = "noop"
