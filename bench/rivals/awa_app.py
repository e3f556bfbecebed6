"""Awa's application, run in its own environment: its job, and the queues it is spread over."""

from dataclasses import dataclass

from awa import AsyncClient, PartitionedQueue  # type: ignore[import-not-found, unused-ignore]

from bench.rivals.loops import database_url

__all__ = ["QUEUE", "Noop", "open_client"]

# Its guide's first advice for one busy queue, where order among all jobs does not matter.
QUEUE = PartitionedQueue("jobs", 4)


@dataclass
class Noop:
    """What the job gets."""

    number: int


def open_client() -> AsyncClient:
    """Connect by PGHOST and its like."""
    return AsyncClient(database_url(), max_connections=20)
