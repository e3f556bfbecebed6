"""A login without any right of ours cannot stop an installation."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.servers import Server
from tests.support.stranger import advisory_locks, stranger
from tests.support.waiting import backend
from trunkline import profiles, sql
from trunkline.errors import SchemaLocked
from trunkline.profiles import installer
from trunkline.schema import install, plan, uninstall, upgrade, verify
from trunkline.schema.plan import Options

NEWEST = len(sql.migrations())


def test_a_stranger_with_advisory_locks_does_not_stop_an_installation(
    server: Server, empty: str
) -> None:
    admin = server.dsn(str(conninfo_to_dict(empty)["dbname"]), superuser=True)
    with psycopg.connect(empty) as other:
        for step in plan.opening(Options()):
            other.execute(step.text.encode())
        seen = advisory_locks(other, backend(other))
        other.rollback()
    with stranger(admin, seen):
        assert install(empty, lock_timeout=5).version == NEWEST
        assert upgrade(empty, lock_timeout=5).applied == ()
        executor = profiles.get("executor")
        assert installer.install(empty, executor, ("phase1",), lock_timeout=5)
        assert installer.rollback(empty, executor, purge=True, lock_timeout=5)
        assert verify(empty) == []
        uninstall(empty, drop_roles=False, lock_timeout=5)


def test_an_upgrade_waits_for_another_installer(empty: str) -> None:
    install(empty)
    with psycopg.connect(empty) as other:
        for step in plan.opening(Options()):
            other.execute(step.text.encode())
        with pytest.raises(SchemaLocked):
            upgrade(empty, lock_timeout=0.05)
        with pytest.raises(SchemaLocked):
            uninstall(empty, lock_timeout=0.05)
        other.rollback()
    assert upgrade(empty).version == NEWEST
