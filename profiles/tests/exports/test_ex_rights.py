"""Who may do what: users, workers, operators, and nobody else."""

import json
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from profiles.tests.exports.conftest import refused, sign_in
from tests.support.databases import Database
from trunkline.profiles import verification

DENIED = psycopg.errors.InsufficientPrivilege
ID = "00000000-0000-0000-0000-000000000000"
WORKER_CALLS = (
    "select * from exports.fetch_next_export_job()",
    f"select * from exports.export_input('{ID}', 'u')",
    f"select exports.update_job_progress('{ID}', 1, 'u')",
    f"select exports.prepare_upload('{ID}', 'u', 1)",
    f"select exports.record_export('{ID}', 'u', 1, '{ID}', 'x', 1, 1)",
    f"select exports.complete_job('{ID}', 'x', 1, 1, 'u', 'x')",
    f"select exports.fail_job('{ID}', 'x', 'u')",
    "select exports.reset_stuck_jobs()",
    "select exports.continue_cleanup()",
)
READS = (
    "select * from exports.export_jobs",
    "select * from exports.export_history",
    "select * from exports.documents",
    "select * from exports.list_history()",
)


@pytest.fixture
def users(platform: Database) -> dict[str, tuple[UUID, Any, UUID]]:
    """Two signed-in users with an export each, which is complete."""
    found = {}
    worker = platform.connect("trunkline_worker")
    for name in "ab":
        user = uuid4()
        connection = sign_in(platform, user)
        (document,) = connection.execute(
            "insert into exports.documents (user_id, title) values (%s, 'CV') returning id", (user,)
        ).fetchone()
        (job,) = connection.execute(
            "select job_id from exports.create_export_job(%s)", (document,)
        ).fetchone()
        assert worker.execute("select id from exports.fetch_next_export_job(null, 'w')").fetchone()
        ((path,),) = worker.execute("select exports.prepare_upload(%s, 'w', 5)", (job,)).fetchall()
        worker.execute("select exports.complete_job(%s, %s, 5, 1, 'w', %s)", (job, path, "0" * 64))
        found[name] = (user, connection, job)
    return found


def test_ex_68_users_read_their_own(users: dict[str, tuple[UUID, Any, UUID]]) -> None:
    """EX-68: jobs, history and documents; nothing of others by any call."""
    user, connection, _ = users["a"]
    for query in READS:
        rows = connection.execute(query.encode()).fetchall()
        assert len(rows) == 1
        assert user in rows[0]
    _, other, foreign = users["b"]
    (history,) = other.execute("select id from exports.export_history").fetchone()
    assert connection.execute("select exports.get_job_status(%s)", (foreign,)).fetchone() == (None,)
    for code, query, value in (
        ("EX007", "select exports.cancel_job(%s)", foreign),
        ("EX011", "select exports.read_export(%s)", history),
        ("EX011", "select exports.count_download(%s)", history),
        ("EX011", "select exports.delete_export(%s)", history),
        ("EX009", "select exports.batch_files(%s)", foreign),
    ):
        with refused(code):
            connection.execute(query.encode(), (value,))


@pytest.mark.parametrize(
    "query",
    [
        "insert into exports.export_jobs (id) values (gen_random_uuid())",
        "update exports.export_jobs set status = 'completed'",
        "delete from exports.export_jobs",
        "insert into exports.requests (job_id) values (gen_random_uuid())",
        "select * from exports.requests",
        "insert into exports.export_history (id) values (gen_random_uuid())",
        "update exports.export_history set file_path = 'x'",
        "delete from exports.export_history",
        "update exports.settings set storage_bytes = 1e12",
        "select * from exports.settings",
        "update exports.people set is_administrator = true",
        "insert into exports.people values (gen_random_uuid(), 'x', true)",
        "select exports.record_operation()",
        "select exports.run_step('checklist', '013_jobs')",
        "select * from exports.metrics",
        "select * from trunkline.jobs",
        "select trunkline.enqueue('export_document')",
        *WORKER_CALLS,
    ],
)
def test_ex_69_users_write_no_rows_and_do_no_work(
    users: dict[str, tuple[UUID, Any, UUID]], query: str
) -> None:
    """EX-69, EX-72: all changes go through the functions for users."""
    with pytest.raises(psycopg.Error) as raised:
        users["a"][1].execute(query.encode())
    assert raised.value.sqlstate in {"42501", "55000", "0A000"}


def test_ex_69_documents_of_others_cannot_be_written(
    users: dict[str, tuple[UUID, Any, UUID]],
) -> None:
    connection = users["a"][1]
    assert connection.execute("update exports.documents set title = 'mine'").rowcount == 1
    with pytest.raises(DENIED):
        connection.execute(
            "insert into exports.documents (user_id, title) values (%s, 'x')", (users["b"][0],)
        )


def test_ex_66_an_administrator_cleans_up_for_all(
    platform: Database, users: dict[str, tuple[UUID, Any, UUID]]
) -> None:
    """EX-66: signed in as a user; everybody else is refused."""
    user, connection, _ = users["a"]
    owner = platform.connect("trunkline_owner")
    owner.execute("update exports.export_history set expires_at = now() - interval '1 day'")
    with refused("EX013"):
        connection.execute("select exports.run_cleanup()")
    owner.execute("insert into exports.people values (%s, 'A', true)", (user,))
    assert connection.execute("select exports.run_cleanup()").fetchone() == (2,)
    # The session is still the user's.
    assert len(connection.execute("select * from exports.export_history").fetchall()) == 1
    with pytest.raises(DENIED):
        platform.connect("trunkline_worker").execute("select exports.run_cleanup()")
    with refused("EX013"):
        platform.connect("trunkline_producer").execute("select exports.run_cleanup()")


def test_nobody_without_an_identity_sees_or_does_anything(platform: Database) -> None:
    connection = sign_in(platform, None)
    for query in READS[:3]:
        assert connection.execute(query.encode()).fetchall() == []
    with refused("EX003"):
        connection.execute(f"select exports.create_export_job('{ID}')".encode())
    for query in (*READS, *WORKER_CALLS, f"select exports.get_job_status('{ID}')"):
        with pytest.raises(DENIED):
            sign_in(platform, None, "anon").execute(query.encode())


@pytest.mark.parametrize("query", [*READS[:3], f"select exports.get_job_status('{ID}')"])
def test_ex_72_a_worker_reads_what_it_holds_only(platform: Database, query: str) -> None:
    with pytest.raises(DENIED):
        platform.connect("trunkline_worker").execute(query.encode())


def test_ex_71_no_secret_is_a_setting_of_the_database(platform: Database) -> None:
    """EX-71: nothing in the database calls a service, so it needs no key for one."""
    owner = platform.connect("trunkline_owner")
    settings = owner.execute("select s.setconfig::text from pg_db_role_setting as s").fetchall()
    assert not any("key" in text or "secret" in text for (text,) in settings)
    sources = owner.execute(
        "select string_agg(p.prosrc, ' ') from pg_proc as p"
        " where p.pronamespace = 'exports'::regnamespace"
    ).fetchone()
    assert "http" not in json.dumps(sources)


def test_ex_10_the_installation_is_verified(platform: Database) -> None:
    """EX-10: row security and grants are as the profile describes them."""
    assert verification.verify(platform.dsn) == []
