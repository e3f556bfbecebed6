"""Awa's application, run in its own environment: its job, and the queues of the job."""

from dataclasses import dataclass

from awa import AsyncClient, PartitionedQueue  # type: ignore[import-not-found, unused-ignore]

from bench.rivals.loops import database_url

__all__ = ["QUEUE", "Noop", "open_client"]

# The first advice of its guide for one busy queue without an order among all jobs.
QUEUE = PartitionedQueue("jobs", 4)


@dataclass
class Noop:
    """The job's arguments."""

    number: int


def open_client() -> AsyncClient:
    """Connect by the PG* variables."""
    return AsyncClient(database_url(), max_connections=20)
