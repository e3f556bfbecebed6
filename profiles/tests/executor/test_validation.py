"""The validation tests: they find what they must, and leave nothing behind."""

from typing import Any

import psycopg
import pytest

from profiles.tests.executor.conftest import Desk
from tests.support.databases import Database
from tests.support.internals import rows
from tests.support.internals.locks import lock_jobs
from trunkline.profiles import session
from trunkline.profiles.validation import validate
from trunkline_profiles.executor import PROFILE

OTHERS = """
select
  (select count(*) from pg_proc where proname like 'validation\\_%'),
  (select prosrc from pg_proc where oid = 'trunkline.clock()'::regprocedure),
  (select d.runs from trunkline.duties as d where d.duty = 'reclaim')
"""


def _traces(superuser: psycopg.Connection[Any]) -> list[Any]:
    return [
        superuser.execute(OTHERS).fetchone(),
        rows.count(superuser, "lanes", queue="executor-validation"),
        *(
            rows.count(superuser, name)
            for name in ("waiting", "running", "dead", "events", "unique_keys")
        ),
    ]


def test_rc_43_to_48_pass(desk: Desk, database: Database) -> None:
    """RC-43, RC-44, RC-45, RC-47, RC-48, RC-53: each test by its number, with its outcome."""
    checks = {check.requirement: check for check in validate(database.dsn, PROFILE)}
    assert checks.keys() == {"RC-43", "RC-44", "RC-45", "RC-47", "RC-48"}
    assert [c.requirement for c in checks.values() if not c.passed] == []
    assert "RECLAIMED_TTL: Exceeded TTL (30 min)" in checks["RC-43"].found
    assert checks["RC-43"].found.startswith("queued, attempts 2")
    assert checks["RC-44"].found == "0"
    assert checks["RC-45"].found.startswith("dead, attempts 10")
    assert "Max attempts reached" in checks["RC-45"].found


def test_rc_43_passes_wherever_the_position_of_reclaim_is(desk: Desk, database: Database) -> None:
    """RC-43: the aged lock lies before what reclaim looked at last; it is found all the same."""
    for _ in range(3):
        desk.enqueue()
        desk.worker.claim("w1", 10)
        desk.pass_time("31 minutes")
        desk.reclaim()
        assert all(check.passed for check in validate(database.dsn, PROFILE))


def test_rc_46_nothing_is_left(desk: Desk, database: Database) -> None:
    """RC-46: no job, no event, no function, no clock of its own; live work is as it was."""
    desk.start()
    desk.enqueue()
    superuser = database.superuser()
    before = _traces(superuser)
    validate(database.dsn, PROFILE)
    assert _traces(superuser) == before


def test_rc_46_nobody_else_sees_the_tests(desk: Desk, database: Database) -> None:
    """RC-46: while they run, a worker claims nothing of them and its clock is right."""
    with session(database.dsn, PROFILE) as opened:
        connection = opened.connection
        connection.execute(PROFILE.text("validate", "tests.sql").encode())
        connection.execute("select executor.validation_at('-35 minutes')")
        connection.execute("select executor.validation_enqueue('test-seen')")
        assert desk.worker.claim("w1", 10).jobs == []
        away = desk.worker.value("select clock_timestamp() - trunkline.clock()")
        assert abs(away.total_seconds()) < 5
        connection.rollback()


def test_rc_44_finds_a_job_that_nobody_took_back(desk: Desk, database: Database) -> None:
    """RC-44, RC-42: silent for more than twice its TTL, because reclaim cannot reach it."""
    desk.start()
    desk.pass_time("61 minutes")
    holder = database.superuser(autocommit=False)
    lock_jobs(holder, "running")
    failed = [c for c in validate(database.dsn, PROFILE) if not c.passed]
    assert [(c.requirement, c.found) for c in failed] == [("RC-44", "1")]


def test_rc_43_fails_where_the_ttl_is_another(desk: Desk, database: Database) -> None:
    """RC-43, RC-45: the tests can fail, and say what they found."""
    desk.operator.value("select executor.set_job_type('run_tsa', '50 minutes')")
    failed = {c.requirement: c.found for c in validate(database.dsn, PROFILE) if not c.passed}
    assert failed.keys() == {"RC-43", "RC-45"}
    assert failed["RC-43"].startswith("running, attempts 1")


def test_a_role_without_the_right_is_refused(desk: Desk, database: Database) -> None:
    """RC-46: the tests turn back the clock of their transaction, which only the owner may."""
    database.superuser().execute("create role auditor login in role trunkline_operator")
    dsn = database.dsn.replace("trunkline_installer@", "auditor@")
    with pytest.raises(Exception, match="permission denied"):
        validate(dsn, PROFILE)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        desk.operator.connection.execute("set role trunkline_owner")
    database.superuser().execute("drop role auditor")
