"""The tools of these tests do what they say, or nothing they prove is proven."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support import pgbouncer
from tests.support.databases import Database
from tests.support.proxy import FaultProxy
from tests.support.waiting import together, until

SHORT = 1


@pytest.fixture
def proxy(database: Database) -> Iterator[FaultProxy]:
    with FaultProxy.before(database.dsn) as made:
        yield made


def connect(proxy: FaultProxy, database: Database) -> psycopg.Connection:
    return psycopg.connect(proxy.dsn(database.dsn), autocommit=True, connect_timeout=30)


def number(connection: psycopg.Connection) -> object:
    row = connection.execute("select 7").fetchone()
    assert row is not None
    return row[0]


def test_a_cut_connection_is_reset_and_a_new_one_works(
    database: Database, proxy: FaultProxy
) -> None:
    with connect(proxy, database) as one:
        assert number(one) == 7
        proxy.cut()
        with pytest.raises(psycopg.OperationalError):
            number(one)
    with connect(proxy, database) as other:
        assert number(other) == 7


def test_a_silent_connection_stays_open_and_goes_on_where_it_was(
    database: Database, proxy: FaultProxy
) -> None:
    with connect(proxy, database) as one:
        proxy.blackhole()

        def ask() -> object:
            return number(one)

        def wait_and_open() -> object:
            before = proxy.links[0].to_server
            with pytest.raises(psycopg.OperationalError, match="timeout"):
                psycopg.connect(proxy.dsn(database.dsn), connect_timeout=SHORT)
            assert proxy.links[0].to_server == before
            assert not one.closed
            proxy.open()
            return "opened"

        assert together([ask, wait_and_open]) == [7, "opened"]


def test_silenced_connections_stay_silent_while_new_ones_work(
    database: Database, proxy: FaultProxy
) -> None:
    with connect(proxy, database) as one:
        [silenced] = proxy.blackhole_present()
        one.pgconn.send_query(b"select 7")
        with connect(proxy, database) as other:
            assert number(other) == 7
        assert silenced.alive
        assert not one.pgconn.is_busy() or one.pgconn.status == psycopg.pq.ConnStatus.OK
        one.close()


def test_refused_connections_fail_at_once(database: Database, proxy: FaultProxy) -> None:
    proxy.refuse()
    with pytest.raises(psycopg.OperationalError):
        connect(proxy, database)
    proxy.open()
    with connect(proxy, database) as one:
        assert number(one) == 7


def test_a_half_closed_connection_hears_no_answer(database: Database, proxy: FaultProxy) -> None:
    with connect(proxy, database) as one:
        one.execute("create table heard (here boolean)")
        proxy.links[0].close_half()
        with pytest.raises(psycopg.OperationalError):
            one.execute("insert into heard values (true)")
    with connect(proxy, database) as other:
        until(
            lambda: other.execute("select count(*) from heard").fetchone() == (1,),
            "the statement arrived nevertheless",
        )


def test_a_mute_connection_carries_questions_and_no_answers(
    database: Database, proxy: FaultProxy
) -> None:
    with connect(proxy, database) as one, psycopg.connect(database.dsn, autocommit=True) as other:
        other.execute("create table heard (here boolean)")
        [link] = proxy.links
        link.hold_answers()
        one.pgconn.send_query(b"insert into heard values (true)")
        one.pgconn.flush()
        until(
            lambda: other.execute("select count(*) from heard").fetchone() == (1,),
            "the statement arrived",
        )
        one.pgconn.consume_input()
        assert one.pgconn.is_busy()
        one.close()


def test_the_pooler_shares_few_server_connections(database: Database) -> None:
    """Two transactions of one client may run on two server connections: that is the point."""
    with pgbouncer.start(database.server, size=2) as pooler:
        dsn = pooler.dsn(database.dsn)
        clients = [psycopg.connect(dsn, autocommit=True) for _ in range(20)]
        try:
            processes = {client.execute("select pg_backend_pid()").fetchone() for client in clients}
        finally:
            for client in clients:
                client.close()
    assert 1 <= len(processes) <= 2
