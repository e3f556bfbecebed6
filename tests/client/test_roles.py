"""With the rights of its role alone: a producer enqueues and waits, a reader looks."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from psycopg.conninfo import make_conninfo

from tests.client.twins import Hands, Twin
from tests.support.databases import Database
from trunkline import Trunkline
from trunkline.errors import SchemaForbidden


@contextmanager
def application(database: Database, role: str, *, blocking: bool) -> Iterator[Twin]:
    """An application that logs in with nothing but a membership."""
    superuser = database.superuser()
    login = f"{role}_{database.name[-8:]}"
    superuser.execute(f"create role {login} login in role {role}")
    try:
        app = Trunkline(make_conninfo(database.dsn, user=login))

        @app.task
        def work(number: int) -> int:
            return number

        with Twin(app, blocking=blocking) as twin:
            yield twin
    finally:
        superuser.execute(f"drop role {login}")


@pytest.fixture(params=[False, True], ids=["async", "sync"])
def blocking(request: pytest.FixtureRequest) -> bool:
    found: bool = request.param
    return found


def test_a_producer_needs_no_more(database: Database, hands: Hands, *, blocking: bool) -> None:
    with application(database, "trunkline_producer", blocking=blocking) as twin:
        handle = twin(twin.of(twin.app.tasks["work"]).options(unique_key="x").enqueue(5))
        hands.complete("25")
        assert twin(handle.wait(timeout=180)) == 25
        waiting = twin(twin.jobs.enqueue("work", {"number": 1}))
        assert twin(twin.jobs.explain(waiting))[0].reason == "no_worker"
        assert twin(twin.jobs.cancel(waiting)).state == "cancelled"
        assert len(twin(twin.jobs.list())) == 2
        with pytest.raises(SchemaForbidden, match="permission denied for function retry") as caught:
            twin(twin.jobs.retry(handle))
        assert "trunkline_operator" in caught.value.hint


def test_a_reader_only_reads(database: Database, *, blocking: bool) -> None:
    with application(database, "trunkline_reader", blocking=blocking) as twin:
        assert twin(twin.jobs.list()) == []
        with pytest.raises(SchemaForbidden, match="register_tasks") as caught:
            twin(twin.of(twin.app.tasks["work"]).enqueue(5))
        assert caught.value.code == "schema_forbidden"
