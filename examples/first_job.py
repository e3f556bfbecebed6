"""A hundred jobs, two workers, one of them killed on the way: nothing is lost, nothing done twice.

Everything happens on an embedded PostgreSQL in a temporary folder, through the SQL functions that
any language can call. Run it with `make demo`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
from psycopg.types.json import Jsonb

from trunkline import schema
from trunkline.embedded import acquire

ORDERS = 100
KILL_AFTER = 20
QUEUE = "first-job"


def produce(connection: psycopg.Connection) -> None:
    """Store orders and enqueue their receipts: each pair commits together or not at all."""
    for number in range(ORDERS):
        with connection.transaction():
            connection.execute("insert into orders (number) values (%s)", (number,))
            connection.execute(
                "select * from trunkline.enqueue(p_task => 'receipt', p_payload => %s)",
                (Jsonb({"order": number}),),
            )
    try:
        with connection.transaction():
            connection.execute("insert into orders (number) values (%s)", (ORDERS,))
            connection.execute(
                "select * from trunkline.enqueue(p_task => 'receipt', p_payload => %s)",
                (Jsonb({"order": ORDERS}),),
            )
            raise ValueError("the customer changed her mind")
    except ValueError:
        print("  one more order was rolled back, and its job with it")


def work(dsn: str, worker: str) -> None:
    """Claim, do, complete, until nothing waits and nothing runs; the loop of a worker in small."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "select trunkline.register_worker(p_worker => %s, p_pulse_interval => '1 second')",
            (worker,),
        )
        while connection.execute(
            "select ready + scheduled + running > 0 from trunkline.queues where queue = %s",
            (QUEUE,),
        ).fetchone() == (True,):
            connection.execute("select trunkline.pulse(%s)", (worker,))
            claimed = connection.execute(
                "select job_id, attempt, payload from trunkline.claim("
                "  p_worker => %s, p_queues => array[%s], p_limit => 2)",
                (worker, QUEUE),
            ).fetchall()
            for job, attempt, payload in claimed:
                with connection.transaction():
                    # The effect and the completion commit together; a stale attempt undoes both.
                    connection.execute(
                        "insert into receipts (number, worker) values (%s, %s)",
                        (payload["order"], worker),
                    )
                    connection.execute(
                        "select * from trunkline.complete(%s, array[%s]::uuid[], array[%s],"
                        "  p_strict => true)",
                        (worker, job, attempt),
                    )
                print(f"{worker} {payload['order']}", flush=True)
                if worker == "mortal" and payload["order"] >= KILL_AFTER:
                    signal.pause()
            if not claimed:
                # A real worker runs all duties in turn; here only the one the story is about.
                connection.execute("select * from trunkline.reclaim()")
                time.sleep(0.1)


def start(dsn: str, worker: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, worker],
        env=os.environ | {"TRUNKLINE_DSN": dsn},
        stdout=subprocess.PIPE,
        text=True,
    )


def account(connection: psycopg.Connection) -> bool:
    """Print what became of the jobs and say whether the books balance."""
    row = connection.execute(
        """
        select
          (select count(*) from orders),
          (select count(*) from trunkline.jobs where queue = %(queue)s and state = 'completed'),
          (select count(*) from trunkline.reclaim_history where queue = %(queue)s),
          (select count(*) from orders as o
           where not exists (select from receipts as r where r.number = o.number)),
          (select count(*) - count(distinct number) from receipts)
        """,
        {"queue": QUEUE},
    ).fetchone()
    assert row is not None  # noqa: S101 - a select without a from always has a row
    enqueued, completed, reclaimed, lost, duplicates = row
    print(
        f"enqueued {enqueued}, completed {completed}, reclaimed {reclaimed},"
        f" lost {lost}, duplicates {duplicates}"
    )
    return bool(enqueued == completed == ORDERS and reclaimed > 0 and lost == 0 and duplicates == 0)


def main() -> int:
    if len(sys.argv) > 1:
        work(os.environ["TRUNKLINE_DSN"], sys.argv[1])
        return 0
    with tempfile.TemporaryDirectory() as folder, acquire(home=Path(folder)) as server:
        print("starting an embedded PostgreSQL and installing the schema")
        schema.install(server.dsn)
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create table orders (number integer primary key)")
            connection.execute("create table receipts (number integer not null, worker text)")
            connection.execute("select trunkline.set_setting('reclaim_jitter', '0')")
            connection.execute(
                "select trunkline.register_task(p_task => 'receipt', p_queue => %s)", (QUEUE,)
            )
            print(f"enqueueing {ORDERS} jobs, each in the transaction of its order")
            produce(connection)
            mortal, steady = start(server.dsn, "mortal"), start(server.dsn, "steady")
            assert mortal.stdout is not None  # noqa: S101 - it was asked for
            for line in mortal.stdout:
                if int(line.split()[1]) >= KILL_AFTER:
                    break
            mortal.kill()
            mortal.wait()
            mortal.stdout.close()
            print("killed a worker with SIGKILL while it held a job; the other one goes on")
            steady.communicate(timeout=60)
            return 0 if account(connection) else 1


if __name__ == "__main__":
    sys.exit(main())
