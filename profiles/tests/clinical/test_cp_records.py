"""Records that two jobs write at once, and the audit of what each of them replaced."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from profiles.tests.clinical.conftest import TYPES, Clinic
from tests.support.calls import Calls
from tests.support.pause import ended_or_blocked
from tests.support.waiting import DEADLINE, backend


def write(connection: psycopg.Connection[Any], job: UUID, worker: str, body: Any) -> UUID:
    found: UUID = Calls(connection).value(
        "select clinical.write_record(%s, 1, %s, 'k', %s)", job, worker, Jsonb(body)
    )
    return found


@pytest.mark.parametrize("known", [True, False], ids=["replaced", "new"])
def test_cp_72_of_two_writers_the_second_replaces_what_the_first_wrote(
    clinic: Clinic, *, known: bool
) -> None:
    """CP-72: the audit shows each body as the one before it, whoever waited for whom."""
    jobs = [clinic.start(TYPES[0], f"w{n}") for n in range(3)]
    if known:
        write(clinic.worker.connection, jobs[2], "w2", {"by": 2})
    first, second = (clinic.database.connect("trunkline_worker", autocommit=False) for _ in "ab")
    record = write(first, jobs[0], "w0", {"by": 0})
    observer = clinic.database.superuser()
    with ThreadPoolExecutor(max_workers=1) as pool:
        later = pool.submit(write, second, jobs[1], "w1", {"by": 1})
        assert ended_or_blocked(observer, second, later) == [backend(first)]
        first.commit()
        assert later.result(DEADLINE) == record
    second.commit()
    changes = [
        (event.action, event.old_values, event.new_values)
        for event in clinic.audit(record, "clinical_records")
    ]
    assert changes[-1] == ("UPDATE", {"by": 0}, {"by": 1})
    assert changes[-2] == (
        ("UPDATE", {"by": 2}, {"by": 0}) if known else ("INSERT", None, {"by": 0})
    )
    body = clinic.rows("select body from clinical.clinical_records where id = %s", record)
    assert [row.body for row in body] == [{"by": 1}]
