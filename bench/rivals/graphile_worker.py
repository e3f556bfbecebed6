"""graphile-worker, the fastest queue in JavaScript: it claims batches ahead of time."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from bench.place import Place
from bench.rivals.npm import NodeEnvironment
from bench.rivals.product import ROOT, Contender, PostgresContender, Product, libpq_variables

__all__ = ["PRODUCT"]

_ENVIRONMENT = NodeEnvironment("graphile-worker", ["graphile-worker@0.18.0", "pg@8.23.1"])

# The settings of its own performance test, but with 100 jobs at once instead of 24, and 1,000
# fetched ahead instead of 500: a third faster here, two thirds for jobs that take a millisecond.
_SETTINGS = {
    "concurrentJobs": 100,
    "maxPoolSize": 25,
    "localQueue": {"size": 1000},
    "completeJobBatchDelay": 0,
    "failJobBatchDelay": 0,
}


@contextmanager
def _open(place: Place) -> Iterator[Contender]:
    with place.empty_database("graphile_worker") as dsn:
        environment = {**libpq_variables(dsn), **_ENVIRONMENT.variables}
        producer = _ENVIRONMENT.command("graphile_worker_producer")
        subprocess.run([*producer, "install"], check=True, cwd=ROOT, env=environment)
        with PostgresContender(
            key=PRODUCT.key,
            name=PRODUCT.name,
            dsn=dsn,
            worker=_ENVIRONMENT.command("graphile_worker_worker", json.dumps(_SETTINGS)),
            producer=producer,
            environment=environment,
            is_empty="select not exists (select from graphile_worker._private_jobs)",
            # Ended jobs are deleted. A failed one stays, so the table is never empty then.
            ended=None,
            forget="truncate graphile_worker._private_jobs, graphile_worker._private_job_queues",
        ) as contender:
            yield contender


PRODUCT = Product(
    key="graphile_worker",
    name="graphile-worker",
    language="JavaScript",
    settings="100 concurrent jobs, local queue of 1,000, completion batched without delay, pool of "
    "25; producer: pool of ten; bulk: `addJobs`",
    prepare=_ENVIRONMENT.make,
    versions=lambda: _ENVIRONMENT.versions("graphile-worker", "pg"),
    open=_open,
    pace=23_000,
)
