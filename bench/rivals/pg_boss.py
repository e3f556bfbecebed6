"""pg-boss: a handler gets a batch as a whole; NOTIFY wakes workers."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from bench.place import Place
from bench.rivals.npm import NodeEnvironment
from bench.rivals.product import ROOT, Contender, PostgresContender, Product, libpq_variables

__all__ = ["PRODUCT"]

# Not 12.38: a package that it requires was not available.
_ENVIRONMENT = NodeEnvironment("pg-boss", ["pg-boss@12.35.0", "pg@8.23.1"])

# NOTIFY instead of polling; then only bursts fetch again at once after a full batch. Four fetches
# at a time keep two cores busy. Ten, which polling needed, slow each other down.
_QUEUE = {"notify": True}
_INSTANCE = {"max": 10, "useListenNotify": True}
_WORK = {"batchSize": 1000, "localConcurrency": 4, "burstWhenBatchFull": True}


@contextmanager
def _open(place: Place) -> Iterator[Contender]:
    with place.empty_database("pg_boss") as dsn:
        environment = {**libpq_variables(dsn), **_ENVIRONMENT.variables}
        producer = _ENVIRONMENT.command("pg_boss_producer")
        install = [*producer, "install", json.dumps(_QUEUE)]
        subprocess.run(install, check=True, cwd=ROOT, env=environment)
        with PostgresContender(
            key=PRODUCT.key,
            name=PRODUCT.name,
            dsn=dsn,
            worker=_ENVIRONMENT.command("pg_boss_worker", json.dumps(_INSTANCE), json.dumps(_WORK)),
            producer=producer,
            environment=environment,
            is_empty="""
            select not exists (select from pgboss.job where name = 'noop' and state <= 'active')
            """,
            ended="""
            select coalesce(sum(1 + retry_count), 0), count(distinct data -> 'number')
            from pgboss.job
            where name = 'noop' and state = 'completed'
            """,
            forget="truncate pgboss.job",
        ) as contender:
            yield contender


PRODUCT = Product(
    key="pg_boss",
    name="pg-boss",
    language="JavaScript",
    settings="LISTEN/NOTIFY, four workers in a process with batches of 1,000, bursts while batches "
    "are full; producer: pool of ten; bulk: `insert`",
    prepare=_ENVIRONMENT.make,
    versions=lambda: _ENVIRONMENT.versions("pg-boss", "pg"),
    open=_open,
    pace=20_000,
)
