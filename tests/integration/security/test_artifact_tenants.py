"""A session of one tenant takes no part in the sweep of the store, whose files are of all."""

from __future__ import annotations

import psycopg
import pytest

from tests.integration.security.artifact_calls import STORE_CALLS
from tests.integration.security.conftest import Connection, Tenants
from tests.support.internals import storage
from tests.support.internals.rows import contents

_TABLES = ("artifacts", "file_removals", "staged_artifacts", "storage_usage", "store_sweep")


@pytest.fixture
def everybody(tenants: Tenants) -> Connection:
    """A worker for all tenants that has the sweep; files of both tenants are to be checked."""
    storage.age_published(tenants.looker, "2 days")
    storage.make_removals_due(tenants.looker)
    connection = tenants.database.connect("trunkline_worker")
    assert connection.execute("select trunkline.take_sweep('sweeper')").rowcount == 1
    return connection


@pytest.mark.parametrize("function", STORE_CALLS)
def test_the_sweep_serves_sessions_for_all_tenants_only(
    tenants: Tenants, everybody: Connection, function: str
) -> None:
    call, whole, nothing = STORE_CALLS[function]
    query = f"select * from {tenants.fill(call)}".encode()
    before = [contents(tenants.looker, table) for table in _TABLES]
    for role in ("worker", "operator"):
        narrowed = tenants.narrowed(role)
        assert narrowed.execute(query).fetchall() == nothing
        narrowed.close()
    assert [contents(tenants.looker, table) for table in _TABLES] == before
    # The same call in a session for all tenants has an effect.
    with everybody.transaction(force_rollback=True):
        rows = everybody.execute(query).fetchall()
    if isinstance(whole, set):
        text = str(rows)
        assert {name for name in whole if name in text} == whole
    else:
        assert (len(rows) if isinstance(whole, int) else rows) == whole
    everybody.close()


def test_the_sweep_is_not_taken_for_one_tenant(tenants: Tenants) -> None:
    storage.end_lease(tenants.looker)
    before = contents(tenants.looker, "store_sweep")
    narrowed = tenants.narrowed("worker")
    assert narrowed.execute("select * from trunkline.take_sweep('theirs')").fetchall() == []
    assert contents(tenants.looker, "store_sweep") == before
    narrowed.close()


def test_a_quota_counts_the_own_tenant_only(tenants: Tenants) -> None:
    """Seven of a's thousand bytes are used, and five reserved."""
    worker = tenants.narrowed("worker")
    call = "trunkline.begin_artifact('worker_a', <a running>, 1, 'x', p_bytes => {})"
    with worker.transaction(force_rollback=True):
        worker.execute(f"select {tenants.fill(call.format(988))}".encode())
    with pytest.raises(psycopg.Error) as refused:
        worker.execute(f"select {tenants.fill(call.format(989))}".encode())
    assert refused.value.sqlstate == "TL059"
    worker.close()
    reader = tenants.narrowed("reader")
    rows = reader.execute(
        "select tenant, used_bytes, reserved_bytes, max_bytes from trunkline.storage"
    )
    assert rows.fetchall() == [("a", 7, 5, 1000)]
    reader.close()


def test_an_own_upload_is_abandoned(tenants: Tenants) -> None:
    """What is refused for tenant b's upload works for the own one."""
    worker = tenants.narrowed("worker")
    call = "trunkline.abandon_artifact('worker_a', <a running>, 1, <a begun>)"
    with worker.transaction(force_rollback=True):
        assert worker.execute(f"select {tenants.fill(call)}".encode()).fetchone() == (True,)
    worker.close()
