"""The memory of a server with many open streams on which nothing happens."""

import time

from bench import fill
from bench.figures import Figure
from bench.live.latency import started_jobs
from bench.live.scene import api_server, clients, resident, service_key
from bench.place import Place
from bench.sizes import Sizes

__all__ = ["run"]

_GOAL = 400.0
_SETTLE = 2.0


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal: 400 MB."""
    count = sizes.live.idle
    with place.database("live") as dsn, fill.connect(dsn) as connection:
        jobs = [str(job) for job in started_jobs(connection, count)]
        key = service_key(dsn)
        with api_server(place, dsn) as (pid, port), clients(port, key, count) as following:
            empty = resident(pid)
            begin = time.monotonic()
            following.open(jobs)
            took = time.monotonic() - begin
            time.sleep(_SETTLE)
            full = resident(pid)
    return [
        Figure(
            "live_idle_mb", full / 2**20, f"server with {count} streams", "MB", _GOAL, "at most"
        ),
        Figure("live_idle_kb_each", (full - empty) / 2**10 / count, "  for each stream", "KB"),
        Figure("live_open_per_second", count / took, "streams opened", "/s"),
    ]
