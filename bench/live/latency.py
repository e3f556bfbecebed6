"""How late a call of ``progress`` reaches the client that follows the job."""

import time
from statistics import median, quantiles
from uuid import UUID

import psycopg

from bench import fill
from bench.figures import Figure
from bench.live.scene import api_server, clients, service_key
from bench.place import TASK, Place
from bench.sizes import Sizes

__all__ = ["run", "started_jobs"]

_GOAL = 100.0
_WORKER = "bench"
_PROGRESS = "select trunkline.progress(%s, %s::uuid, 1, %s, %s)"
# How long the last events may take.
_DRAIN = 2.0


def started_jobs(connection: psycopg.Connection, count: int) -> list[UUID]:
    """Return so many running jobs, which no worker touches."""
    fill.ready(connection, count, queue="live")
    rows = connection.execute(
        "select job_id from trunkline.claim(%s, p_limit => %s, p_tasks => array[%s])"
        " where job_id is not null",
        (_WORKER, count, TASK),
    ).fetchall()
    return [row[0] for row in rows]


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal: 100 ms at the 95th percentile."""
    size = sizes.live
    with place.database("live") as dsn, fill.connect(dsn) as connection:
        jobs = started_jobs(connection, size.streams)
        key = service_key(dsn)
        with api_server(place, dsn) as (_, port), clients(port, key, size.streams) as following:
            following.open([str(job) for job in jobs])
            following.latencies()
            total = int(size.events_per_second * size.seconds)
            begin = time.monotonic()
            for number in range(total):
                pause = begin + number / size.events_per_second - time.monotonic()
                if pause > 0:
                    time.sleep(pause)
                job = jobs[number % len(jobs)]
                percent = min(100 * number // total, 100)
                connection.execute(_PROGRESS, (_WORKER, job, percent, repr(time.time())))
            took = time.monotonic() - begin
            time.sleep(_DRAIN)
            late = [1e3 * seconds for seconds in following.latencies()]
    cuts = quantiles(late, n=100)
    return [
        Figure("live_events_per_second", total / took, f"changes, {size.streams} streams", "/s"),
        Figure("live_events_received", len(late) / total, "received, of those sent", ""),
        Figure("live_latency_ms", median(late), "from progress to the client, median", "ms"),
        Figure("live_latency_p95_ms", cuts[94], "  95th percentile", "ms", _GOAL, "at most"),
        Figure("live_latency_p99_ms", cuts[98], "  99th percentile", "ms"),
    ]
