"""The counts that a contest reads: processor time, the server's processes, a product's tables."""

import subprocess
import sys

import psycopg

from bench.cpu import cpu_seconds, family
from bench.rivals.product import PostgresContender
from bench.rivals.products import KEYS, find
from tests.support.databases import Database
from tests.support.waiting import until

WORK = "while __import__('time').process_time() < 0.3: pass"


def contender(dsn: str) -> PostgresContender:
    return PostgresContender(
        key="other",
        name="Other",
        dsn=dsn,
        worker=["worker"],
        producer=["producer"],
        is_empty="select not exists (select from jobs)",
        ended="select count(*), count(distinct number) from ends",
        forget="truncate jobs, ends",
    )


def test_time_of_children_that_ended_counts() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])\n"
    code += "print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, WORK]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        # Only the parent is left, which used no time itself.
        assert family([parent.pid]) == [parent.pid]
        assert cpu_seconds([parent.pid]) >= 0.25
        parent.kill()
    assert cpu_seconds([parent.pid]) == 0


def test_the_server_is_found_with_all_its_processes(database: Database) -> None:
    with contender(database.dsn) as other:
        (root,) = other.server_pids()
        assert other.connection.info.backend_pid in family([root])

        def used_by_a_short_connection() -> float:
            before = cpu_seconds([root])
            with psycopg.connect(database.dsn) as short:
                short.execute(
                    "select count(*) from generate_series(1, 3000000) as n where n % 7 = 1"
                )
                pid = short.info.backend_pid
            until(lambda: pid not in family([root]), "its process has ended")
            return cpu_seconds([root]) - before

        # The time of that connection still counts. Retried, because other tests use this server,
        # and the end of one of their connections may disturb a reading.
        until(lambda: used_by_a_short_connection() >= 0.1, "its time is counted")


def test_the_tables_of_a_product_are_counted(database: Database) -> None:
    with contender(database.dsn) as other:
        other.connection.execute("create table jobs (number int)", prepare=False)
        other.connection.execute("create table ends (number int)", prepare=False)
        assert other.is_empty()
        log, dead = other.log_position(), other.dead_tuples()
        assert log is not None
        assert dead is not None
        with psycopg.connect(database.dsn) as work:
            work.execute("insert into jobs select * from generate_series(1, 100)")
            work.execute("insert into ends select n % 90 from generate_series(1, 100) as n")
            work.execute("delete from jobs where number > 40")
            pid = work.info.backend_pid
        # Its counts arrive when its process has ended, which the close does not wait for.
        until(lambda: pid not in family(other.server_pids()), "its process has ended")
        assert not other.is_empty()
        assert other.ended() == (100, 90)
        assert (other.dead_tuples() or 0) - dead == 60
        assert (other.log_position() or 0) - log > 100 * 2 * 30
        other.forget()
        assert other.is_empty()
        assert other.ended() == (0, 0)
        assert other.dead_tuples() == 0


def test_a_connection_that_was_left_in_a_statement_is_replaced(database: Database) -> None:
    with contender(database.dsn) as other:
        first = other.connection
        first.pgconn.send_query(b"select pg_sleep(600)")
        assert other.connection is not first
        assert other.connection.execute("select 1").fetchone() == (1,)


def test_every_product_describes_itself() -> None:
    """Names are unique, and each key is that of its figures and its module."""
    found = [find(key) for key in KEYS]
    assert [product.key for product in found] == list(KEYS)
    assert len({product.name for product in found}) == len(KEYS)
    assert {product.language for product in found} <= {"Python", "JavaScript", "SQL"}
    for product in found:
        assert product.pace > 0
        assert product.settings
        assert "\n" not in product.settings
