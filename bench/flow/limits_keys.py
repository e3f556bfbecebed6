"""A thousand keys with separate limits, over no limits: speed, and bytes of the log.

Two worker processes drain jobs of 1,000 keys, in databases that take turns: no limit, ten at once
per key, a rate per key. Two connections claim and complete 100 at a time, which shows the cost in
the engine alone; they also run with one at once per key, where every job has a separate bucket.
Bytes of the log are counted from enqueue to finished, after a checkpoint and a warm-up.
"""

import json
from contextlib import ExitStack
from functools import partial

import psycopg

from bench import fill
from bench.apps.noop import KEYS_VARIABLE
from bench.figures import Figure
from bench.flow.drains import drain_in_turns, tell
from bench.flow.limited import QUEUE, TASK, Parts, fill_limited, set_limit
from bench.flow.limits_claim import open_sides
from bench.place import Place
from bench.sides import FunctionSide
from bench.sizes import Sizes
from bench.turns import play

__all__ = ["JUDGED", "KINDS", "LIMIT", "PROCESSES", "live", "run", "written"]

PROCESSES = 2
LIMIT = "key/{key}"
KINDS: dict[str, tuple[str, Parts | None]] = {
    "none": ("no limit", None),
    "slots": ("ten at once of each key", {"concurrency": 10}),
    "rate": ("a rate for each key", {"requests_per_minute": 1_000_000}),
    "single": ("one at once of each key", {"concurrency": 1}),
}
# The goals apply to limits that leave room for more than one job of a key.
JUDGED = ("slots", "rate")
_LEAST_SPEED = 0.7
_MOST_LOG = 300
_BATCH = 1_000


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goals: 0.7 of the speed, and at most 300 more bytes of the log per job."""
    return [*_drain(place, sizes), *_engine(place, sizes), *_log(place, sizes)]


def _drain(place: Place, sizes: Sizes) -> list[Figure]:
    kinds = {kind: parts for kind, (_, parts) in KINDS.items() if kind in ("none", *JUDGED)}
    keys = {KEYS_VARIABLE: str(sizes.flow.keys)}
    drains = drain_in_turns(place, sizes, kinds, [PROCESSES], limit=LIMIT, variables=keys)
    texts = {kind: text for kind, (text, _) in KINDS.items()}
    return tell("limits_keys", drains, texts, {(kind, PROCESSES): _LEAST_SPEED for kind in JUDGED})


def _engine(place: Place, sizes: Sizes) -> list[Figure]:
    with ExitStack() as stack:
        dsns = [stack.enter_context(place.database(f"keys_{kind}")) for kind in KINDS]
        for dsn, (_, parts) in zip(dsns, KINDS.values(), strict=True):
            with fill.connect(dsn) as connection:
                if parts is None:
                    fill.ready(connection, sizes.flow.backlog, queue=QUEUE)
                else:
                    keys, jobs = sizes.flow.keys, sizes.flow.backlog
                    fill_limited(connection, jobs, {LIMIT: parts}, keys=keys)
                fill.analyze(connection)
                fill.checkpoint(connection)
        rounds = play(
            PROCESSES,
            partial(open_sides, dsns),
            rounds=sizes.flow.rounds,
            seconds=sizes.flow.turn_seconds,
        )
    figures = []
    for number, (kind, (text, _)) in enumerate(KINDS.items()):
        key = f"limits_keys_claim_{kind}"
        figures.append(Figure(key, rounds.rate(number), f"engine, {text}", "jobs/s"))
        if number:
            figures.append(Figure(f"{key}_ratio", rounds.ratio(number), "  over no limit"))
        if rounds.has_cpu:
            cpu = rounds.cpu(number) * 1e6
            figures.append(Figure(f"{key}_cpu", cpu, "  server processor time", "us/job"))
    return figures


def _log(place: Place, sizes: Sizes) -> list[Figure]:
    log_bytes: dict[str, float] = {}
    for kind, (_, parts) in KINDS.items():
        with place.database(f"keys_log_{kind}") as dsn, fill.connect(dsn) as connection:
            if parts is not None:
                set_limit(connection, LIMIT, **parts)
            connection.execute(
                "select trunkline.register_task(p_task => %s, p_limits => %s)",
                (TASK, [] if parts is None else [LIMIT]),
            )
            fill.checkpoint(connection)
            side = FunctionSide(dsn, "worker", QUEUE)
            live(connection, side, sizes.flow.log_jobs // 5, sizes.flow.keys)
            before = written(connection)
            live(connection, side, sizes.flow.log_jobs, sizes.flow.keys)
            log_bytes[kind] = (written(connection) - before) / sizes.flow.log_jobs
            side.close()
    figures = []
    for kind, (text, _) in KINDS.items():
        key = f"limits_keys_log_{kind}"
        figures.append(Figure(key, log_bytes[kind], f"log, {text}", "bytes"))
        if kind != "none":
            goal = _MOST_LOG if kind in JUDGED else None
            more = log_bytes[kind] - log_bytes["none"]
            figures.append(
                Figure(f"{key}_more", more, "  more per job", "bytes", goal=goal, better="at most")
            )
    return figures


def live(connection: psycopg.Connection, side: FunctionSide, jobs: int, keys: int) -> None:
    """Enqueue all jobs, then claim and complete them."""
    for begin in range(0, jobs, _BATCH):
        requests = [
            {"task": TASK, "queue": QUEUE, "payload": {"key": str(number % keys)}}
            for number in range(begin, min(begin + _BATCH, jobs))
        ]
        connection.execute(
            "select count(*) from trunkline.enqueue_many(%s::jsonb)", (json.dumps(requests),)
        )
    done = 0
    while claimed := side.claim():
        if not claimed[0]:
            break
        done += side.complete(*claimed)
    if done != jobs:
        raise RuntimeError(f"{done} of {jobs} jobs were completed")


def written(connection: psycopg.Connection) -> int:
    """Return the end of the log in bytes."""
    row = connection.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None  # noqa: S101
    return int(row[0])
