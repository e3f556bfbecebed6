"""Who may do what: users, workers, and nobody else."""

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from profiles.tests.studio.conftest import PARAMS, Studio, refused, sign_in
from tests.support.databases import Database
from trunkline.profiles import verification

DENIED = psycopg.errors.InsufficientPrivilege
WORKER_CALLS = (
    "select * from studio.claim_tasks('u')",
    "select studio.heartbeat_task(gen_random_uuid(), 'u')",
    "select studio.complete_task(gen_random_uuid(), 'u', '{}')",
    "select studio.fail_task(gen_random_uuid(), 'u', 'x')",
    "select studio.prepare_artifact(gen_random_uuid(), 'u', 'pdf', 'x.pdf')",
    "select * from studio.order_files(gen_random_uuid(), 1, 'u')",
    "select studio.reclaim_stale_tasks()",
)
START = "select job_id from studio.start_job('nuclear_v2', %s)"


@pytest.fixture
def users(platform: Database) -> dict[str, tuple[UUID, Any]]:
    """Two signed-in users with a job each."""
    found = {}
    for name in "ab":
        user = uuid4()
        connection = sign_in(platform, user)
        connection.execute(START.encode(), (Jsonb(PARAMS),))
        found[name] = (user, connection)
    return found


def test_a_user_sees_own_jobs_tasks_and_files_only(
    platform: Database, users: dict[str, tuple[UUID, Any]]
) -> None:
    """TA-58, TA-61: B's jobs are 0 rows for A; tasks show their public fields."""
    a, connection = users["a"]
    assert connection.execute("select distinct user_id from studio.jobs").fetchall() == [(str(a),)]
    assert connection.execute("select count(*) from studio.my_tasks").fetchone() == (48,)
    b, other = users["b"]
    (job,) = other.execute("select id from studio.jobs").fetchone()
    for query in (
        "select * from studio.jobs where id = %s",
        "select * from studio.my_tasks where job_id = %s",
        "select * from studio.job_artifacts where job_id = %s",
    ):
        assert connection.execute(query.encode(), (job,)).fetchall() == []
    assert connection.execute("select studio.read_job(%s)", (job,)).fetchone() == (None,)
    assert connection.execute("select studio.job_progress(%s)", (job,)).fetchone() == (None,)
    for verb in ("cancel_job", "delete_job"):
        with refused("TA004"):
            connection.execute(f"select studio.{verb}(%s)".encode(), (job,))
    # The function behind my_tasks.
    with refused("TL043"):
        connection.execute("select studio.public_tasks(%s)", (job,))
    assert b != a


@pytest.mark.parametrize("query", WORKER_CALLS)
def test_a_user_cannot_work(users: dict[str, tuple[UUID, Any]], query: str) -> None:
    """TA-58, TA-60, TA-61: each call of workers is denied."""
    with pytest.raises(DENIED):
        users["a"][1].execute(query.encode())


@pytest.mark.parametrize(
    "query",
    [
        "insert into studio.jobs (id) values (gen_random_uuid())",
        "update studio.jobs set status = 'complete'",
        "select * from studio.job_tasks",
        "select * from studio.legacy_jobs",
        "select * from studio.metrics",
        "insert into studio.documents values ('nuclear_v2', 99, 'x')",
        "select studio.retry_job(gen_random_uuid())",
        "select studio.run_step('cutover', 'dual_read')",
        "select * from trunkline.jobs",
        "select trunkline.start_workflow('{}')",
    ],
)
def test_a_user_orders_through_the_function_only(
    users: dict[str, tuple[UUID, Any]], query: str
) -> None:
    """TA-58: no raw rows, and not for others."""
    with pytest.raises(psycopg.Error) as raised:
        users["a"][1].execute(query.encode())
    assert raised.value.sqlstate in {"42501", "55000", "0A000"}


def test_a_user_orders_for_nobody_else(users: dict[str, tuple[UUID, Any]]) -> None:
    """TA-58: create jobs under own id only."""
    query = b"select studio.start_job('nuclear_v2', %s, null, %s)"
    with refused("TA005"):
        users["a"][1].execute(query, (Jsonb(PARAMS), users["b"][0]))


def test_somebody_without_an_identity_sees_and_starts_nothing(platform: Database) -> None:
    """TA-58, TA-60: signed in without a user, and not signed in at all."""
    connection = sign_in(platform, None)
    assert connection.execute("select count(*) from studio.jobs").fetchone() == (0,)
    with refused("TA005"):
        connection.execute(START.encode(), (Jsonb(PARAMS),))
    for query in (*WORKER_CALLS, "select * from studio.jobs", "select studio.read_job(null)"):
        with pytest.raises(DENIED):
            sign_in(platform, None, "anon").execute(query.encode())


@pytest.mark.parametrize(
    "query",
    [
        "select params from studio.jobs",
        "select * from studio.job_tasks",
        "select * from studio.job_artifacts",
        "select studio.read_job(gen_random_uuid())",
        "select * from trunkline.workflows",
        "select * from trunkline.jobs",
        "select studio.resolved_input('w1', gen_random_uuid(), 1, '{}')",
        "select studio.running_attempt(gen_random_uuid(), 'w1', 1)",
        "update studio.task_types set lease = '1 second'",
    ],
)
def test_a_worker_sees_what_it_has_claimed_and_no_params(studio: Studio, query: str) -> None:
    """TA-59, TA-61: the input of its tasks, not jobs.params."""
    studio.order()
    (task,) = studio.claim(count=1)
    assert task.input["person1"] == PARAMS["person1"]
    with pytest.raises(DENIED):
        studio.worker.connection.execute(query.encode())


def test_the_files_of_an_order_are_read_by_its_last_task_only(studio: Studio) -> None:
    """TA-59: fenced by task, attempt and worker."""
    studio.order()
    studio.unlimited()
    (text,) = studio.claim(count=1)
    query = "select * from studio.order_files(%s, %s, %s)"
    with refused("TA007"):
        studio.rows(query, text.id, text.attempt, "w1", calls=studio.worker)
    studio.complete(text.id, *studio.product(text))
    studio.finish()
    (final,) = studio.claim("finalize_job")
    files = studio.rows(query, final.id, final.attempt, "w1", calls=studio.worker)
    assert len(files) == 48
    for fence in ((final.id, 2, "w1"), (final.id, 1, "w2"), (final.id, None, "w1")):
        with refused("TA007"):
            studio.rows(query, *fence, calls=studio.worker)


def test_row_security_is_forced_and_the_platform_s_grants_are_taken_back(
    platform: Database,
) -> None:
    """TA-60: on every table; PUBLIC and the platform's roles have what the profile grants."""
    superuser = platform.superuser()
    rows = superuser.execute(
        "select relname from pg_class where relnamespace = 'studio'::regnamespace"
        " and relkind = 'r' and not (relrowsecurity and relforcerowsecurity)"
    ).fetchall()
    assert rows == []
    granted = superuser.execute(
        "select p.proname from pg_proc as p where p.pronamespace = 'studio'::regnamespace"
        " and has_function_privilege('authenticated', p.oid, 'execute') order by 1"
    ).fetchall()
    assert [row[0] for row in granted] == [
        *("cancel_job", "delete_job", "job_progress", "job_status", "public_tasks"),
        *("read_job", "start_job"),
        "task_status",
    ]


def test_the_profile_is_installed_as_it_is_described(platform: Database) -> None:
    """TA-60: `trunkline schema verify` finds nothing."""
    assert verification.verify(platform.dsn) == []
