"""Keys from before 0027: live jobs hold theirs for their task, requests match any payload."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.migrations.test_upgrade import install_only
from tests.support.calls import Calls
from trunkline.schema import upgrade

BEFORE = 26

# Jobs as the functions before 0027 left them: one that waits and one that runs outside a profile,
# one within, and two requests, one of them answered by a job that has ended since.
_OLD = """
create temporary table job as
select ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid as id, n
from generate_series(1, 9) as n;
insert into trunkline_internal.tasks (task, profile, registered_at, updated_at)
values
  ('mail', 'default', now(), now()),
  ('fax', 'default', now(), now()),
  ('stamp', 'evidence', now(), now()),
  ('anchor', 'evidence', now(), now());
insert into trunkline_internal.waiting (
  job_id, sequence, run_at, created_at, max_attempts, lane, state, queue, task, tenant, unique_key,
  payload
)
select
  j.id, j.n, now(), now(), 4, 0, 'ready', 'default', case j.n when 1 then 'mail' else 'stamp' end,
  case j.n when 3 then 'acme' end, 'k', '{}'
from job as j where j.n in (1, 3);
insert into trunkline_internal.running (
  job_id, sequence, claimed_at, lease_expires_at, hard_deadline, run_at, created_at, attempt,
  failures, crashes, deferrals, max_attempts, lane, audit, queue, task, worker, unique_key, payload
)
select
  j.id, j.n, now(), now() + interval '1 hour', now() + interval '1 hour', now(), now(), 1,
  0, 0, 0, 4, 0, false, 'default', 'fax', 'w', 'r', '{}'
from job as j where j.n = 2;
insert into trunkline_internal.unique_keys (profile, tenant, unique_key, job_id)
select
  case j.n when 3 then 'evidence' else 'default' end, case j.n when 3 then 'acme' else '' end,
  case j.n when 2 then 'r' else 'k' end, j.id
from job as j where j.n in (1, 2, 3);
insert into trunkline_internal.idempotency_keys (
  tenant, idempotency_key, job_id, task, run_at, expires_at
)
select
  '', case j.n when 1 then 'live' else 'gone' end, j.id, 'mail', now(), now() + interval '1 hour'
from job as j where j.n in (1, 9);
"""


def job(number: int) -> UUID:
    return UUID(f"01900000-0000-7000-8000-{number:012}")


@pytest.fixture
def old(empty: str) -> str:
    """Leave a database at the migration before, with keys in use."""
    install_only(empty, BEFORE)
    with psycopg.connect(empty) as connection:
        connection.execute("set local role trunkline_owner")
        connection.execute(_OLD.encode())
    return empty


@pytest.fixture
def calls(old: str) -> Any:
    """The same database after the upgrade."""
    upgrade(old)
    with psycopg.connect(old, autocommit=True) as connection:
        yield Calls(connection)


def test_live_jobs_keep_their_keys_for_their_task(calls: Calls) -> None:
    assert calls.enqueue("mail", unique_key="k", priority=5).job_id == job(1)
    assert calls.enqueue("fax", unique_key="r").job_id == job(2)
    for task, key in (("fax", "k"), ("mail", "r")):
        made = calls.enqueue(task, unique_key=key)
        assert made.created
        assert calls.enqueue(task, unique_key=key).job_id == made.job_id
    for task in ("stamp", "anchor"):
        assert calls.enqueue(task, unique_key="k", tenant="acme").job_id == job(3)


def test_their_ends_free_the_keys(calls: Calls) -> None:
    calls.connection.execute("select trunkline.complete('w', array[%s]::uuid[], '{1}')", (job(2),))
    assert calls.enqueue("fax", unique_key="r").created
    for number in (1, 3):
        calls.change("cancel", job(number))
    assert calls.enqueue("mail", unique_key="k").created
    assert calls.enqueue("anchor", unique_key="k", tenant="acme").created


def test_requests_from_before_match_any_payload_of_their_task(calls: Calls) -> None:
    for number, key in ((1, "live"), (9, "gone")):
        for payload in ({}, {"to": "ann"}):
            answer = calls.enqueue("mail", idempotency_key=key, payload=payload)
            assert (answer.job_id, answer.created) == (job(number), False)
        with pytest.raises(psycopg.Error) as refused:
            calls.enqueue("fax", idempotency_key=key)
        assert refused.value.sqlstate == "TL027"
        assert '"differs": ["task"]' in (refused.value.diag.message_detail or "")


def test_a_request_that_waited_for_the_upgrade_cannot_pass_a_live_job(calls: Calls) -> None:
    """It may still run the function of before, which writes no task."""
    insert = (
        "insert into trunkline_internal.unique_keys (profile, tenant, unique_key, job_id)"
        " values ('default', '', 'k', gen_random_uuid()) on conflict do nothing"
    )
    calls.connection.execute("set role trunkline_owner")
    with pytest.raises(psycopg.errors.CheckViolation):
        calls.connection.execute(insert)


def test_a_dead_letter_of_before_takes_its_key_for_its_task(calls: Calls) -> None:
    calls.connection.execute(
        "select trunkline.fail('w', array[%s]::uuid[], '{1}', array[%s], array[false])",
        (job(2), Jsonb({"message": "no"})),
    )
    other = calls.enqueue("mail", unique_key="r")
    assert other.created
    calls.connection.execute("select trunkline.retry(%s)", (job(2),))
    assert calls.enqueue("fax", unique_key="r").job_id == job(2)
    assert calls.enqueue("mail", unique_key="r").job_id == other.job_id
