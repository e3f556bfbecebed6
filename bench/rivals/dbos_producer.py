"""DBOS's producer, run in its own environment."""

from collections.abc import Sequence

import sqlalchemy as sa  # type: ignore[import-not-found, unused-ignore]
from dbos import DBOSClient, EnqueueOptions  # type: ignore[import-not-found, unused-ignore]

from bench.apps.producing import serve_blocking
from bench.rivals.dbos_queue import QUEUE, WORKFLOW
from bench.rivals.loops import database_url


class _Producer:
    def __init__(self) -> None:
        self._engine = sa.create_engine(database_url("postgresql+psycopg"), pool_size=10)
        self._client = DBOSClient(system_database_engine=self._engine)
        self._options: EnqueueOptions = {"workflow_name": WORKFLOW, "queue_name": QUEUE}

    def one(self, number: int) -> None:
        self._client.enqueue(self._options, number)

    def many(self, numbers: Sequence[int]) -> None:
        # It has no bulk call; this is its way to enqueue many in one transaction.
        with self._engine.begin() as connection:
            for number in numbers:
                self._client.enqueue_in_transaction(connection, self._options, number)


if __name__ == "__main__":
    serve_blocking(_Producer())
