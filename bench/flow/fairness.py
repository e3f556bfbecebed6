"""How long a tenant's single job waits while another tenant has thousands waiting.

The measure counts jobs instead of time. The large tenant's jobs fill all slots and end one after
the other; each end frees a slot for the next job. A delay of 1 means that as many jobs started
before it as there are slots.
"""

import json
from statistics import mean
from typing import Self

import psycopg

from bench import fill
from bench.figures import Figure
from bench.flow.limited import QUEUE, set_limit
from bench.place import Place
from bench.sides import FunctionSide
from bench.sizes import Sizes

__all__ = ["run"]

TASK = "export"
LIMIT = f"fair:{QUEUE}/{{tenant}}"
SLOTS = 20


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal 1."""
    with place.database("fairness") as dsn, fill.connect(dsn) as connection:
        set_limit(connection, LIMIT)
        connection.execute(
            "select trunkline.register_task(p_task => %s, p_limits => %s)", (TASK, [LIMIT])
        )
        _enqueue(connection, "large", sizes.flow.tenant_jobs)
        with _Slots(dsn) as slots:
            delays = []
            for visit in range(sizes.flow.visits):
                tenant = f"small-{visit % 5}"
                _enqueue(connection, tenant, 1)
                delays.append(slots.until_started(tenant) / SLOTS)
    return [
        Figure("fairness_delay_mean", mean(delays), "started before it, per slot: mean"),
        Figure(
            "fairness_delay_most",
            max(delays),
            f"largest, of {len(delays)} visits",
            goal=1,
            better="at most",
        ),
    ]


class _Slots:
    """Workers whose slots are all taken as long as there is work."""

    def __init__(self, dsn: str) -> None:
        self._side = FunctionSide(dsn, "worker", QUEUE)
        self._running = list(zip(*self._side.claim(SLOTS), strict=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._side.close()

    def until_started(self, tenant: str) -> int:
        """End the oldest job and start the next until this tenant's starts; return their number."""
        started = 0
        while True:
            job, attempt = self._running.pop(0)
            self._side.complete([job], [attempt])
            jobs, attempts = self._side.claim(1)
            if not jobs:
                raise RuntimeError(f"Nothing could be claimed, and {tenant} still waits")
            self._running += zip(jobs, attempts, strict=True)
            if self._side.tenants[-1] == tenant:
                return started
            started += 1


def _enqueue(connection: psycopg.Connection, tenant: str, count: int) -> None:
    requests = [{"task": TASK, "queue": QUEUE, "tenant": tenant, "payload": {}}] * count
    connection.execute(
        "select count(*) from trunkline.enqueue_many(%s::jsonb)", (json.dumps(requests),)
    )
