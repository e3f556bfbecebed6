"""Requests: what is accepted, refused, and counted as the same."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from profiles.tests.exports.conftest import MARGINS, Exports, refused


def problems(error: Any) -> Any:
    return json.loads(error.value.diag.message_detail)["fields"]


def test_ex_15_a_request_becomes_a_pending_job(exports: Exports) -> None:
    """EX-06, EX-11, EX-13, EX-15: with the defaults of all options; nothing is rendered."""
    document = exports.document()
    job = exports.job(exports.create(document))
    assert (job.status, job.progress, job.attempts, job.max_attempts) == ("pending", 0, 0, 5)
    assert (job.user_id, job.document_id, job.document_version) == (exports.user, document, 1)
    assert (job.format, job.priority, job.batch_id) == ("pdf", 0, None)
    assert job.options == {
        "templateSlug": "minimal",
        "pageSize": "Letter",
        "margins": MARGINS,
        "quality": "normal",
        "colorMode": "color",
    }
    assert (job.result_url, job.file_size, job.page_count, job.locked_by) == (None,) * 4


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"pageSize": "A3"}, "pageSize"),
        ({"quality": "best"}, "quality"),
        ({"quality": 1}, "quality"),
        ({"colorMode": "sepia"}, "colorMode"),
        ({"templateSlug": "../x"}, "templateSlug"),
        ({"margins": MARGINS | {"top": 2.1}}, "margins.top"),
        ({"margins": MARGINS | {"left": "1"}}, "margins.left"),
        ({"margins": {"top": 1}}, "margins"),
        ({"margins": 1}, "margins"),
        ({"margins": MARGINS | {"middle": 1}}, "margins.middle"),
        ({"format": "docx"}, "format"),
    ],
)
def test_ex_12_wrong_options_are_refused_with_their_fields(
    exports: Exports, options: dict[str, Any], field: str
) -> None:
    """EX-11, EX-12, EX-90: a given margins object holds all four sides."""
    with refused("EX002") as error:
        exports.create(**options)
    assert list(problems(error)) == [field]
    assert exports.jobs() == []


def test_ex_90_every_option_is_stored_and_part_of_the_key(exports: Exports) -> None:
    document = exports.document()
    jobs = {
        exports.create(document),
        exports.create(document, templateSlug="classic"),
        exports.create(document, colorMode="grayscale"),
        exports.create(document, margins=MARGINS | {"top": 0}),
    }
    assert len(jobs) == 4
    assert exports.create(document, templateSlug="classic") in jobs
    assert {job.options["templateSlug"] for job in exports.jobs()} == {"minimal", "classic"}


def test_ex_12_documents_of_others_do_not_exist(exports: Exports) -> None:
    """EX-12, EX-S12: 404 and no job row."""
    foreign = exports.document(user=exports.person())
    for document in (foreign, uuid4()):
        with refused("EX001"):
            exports.create(document)
    assert exports.jobs() == []


def test_ex_12_a_request_needs_a_user(exports: Exports) -> None:
    with refused("EX003"):
        exports.producer.value(
            "select job_id from exports.create_export_job(%s)", exports.document()
        )


def test_ex_14_twenty_equal_requests_at_once_are_one_job(exports: Exports) -> None:
    """EX-14, EX-77, EX-S09: after an edit, a new request is another job."""
    document = exports.document()
    connections = [exports.database.connect("trunkline_producer") for _ in range(20)]

    def ask(connection: Any) -> Any:
        query = b"select job_id from exports.create_export_job(%s, '{}', %s)"
        return connection.execute(query, (document, exports.user)).fetchone()[0]

    with ThreadPoolExecutor(20) as pool:
        jobs = set(pool.map(ask, connections))
    assert len(jobs) == len(exports.jobs()) == 1
    exports.producer.connection.execute(
        "update exports.documents set title = 'CV 2' where id = %s", (document,)
    )
    second = exports.create(document)
    assert second not in jobs
    assert exports.job(second).document_version == 2


def test_ex_14_a_finished_job_is_no_duplicate(exports: Exports) -> None:
    document = exports.document()
    first = exports.create(document)
    exports.claim()
    exports.complete(first)
    assert exports.create(document) != first


def test_ex_06_the_version_changes_only_with_the_document(exports: Exports) -> None:
    document = exports.document()
    for change in ("title = title", "version = 7", "data = data"):
        exports.producer.connection.execute(
            f"update exports.documents set {change} where id = %s".encode(), (document,)
        )
    assert exports.job(exports.create(document)).document_version == 1


def test_ex_16_the_hundred_and_first_operation_of_a_day_is_refused(exports: Exports) -> None:
    """EX-16, EX-94, EX-S12: of other features too; the UTC day, and only what is created."""
    document = exports.document()
    exports.database.move_to_noon()
    exports.producer.value("select exports.record_operation(%s, 98)", exports.user)
    first = exports.create(document)
    exports.create()
    with refused("EX004") as error:
        exports.create()
    assert json.loads(error.value.diag.message_detail)["free_at"] is not None
    with refused("EX004"):
        exports.producer.value("select exports.record_operation(%s)", exports.user)
    # A duplicate costs nothing and is not refused.
    assert exports.create(document) == first
    # Another user has a day too.
    exports.create(user=exports.person())
    exports.later("12 hours 1 minute")
    exports.create()


def test_ex_16_parallel_requests_spend_no_more_than_the_day_has(exports: Exports) -> None:
    exports.producer.value("select exports.record_operation(%s, 96)", exports.user)
    documents = [exports.document() for _ in range(8)]
    connections = [exports.database.connect("trunkline_producer") for _ in documents]

    def ask(pair: Any) -> bool:
        query = b"select job_id from exports.create_export_job(%s, '{}', %s)"
        try:
            pair[0].execute(query, (pair[1], exports.user))
        except psycopg.Error as error:
            return error.sqlstate != "EX004"
        return True

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(ask, zip(connections, documents, strict=True)))
    assert sum(made) == len(exports.jobs()) == 4


def test_ex_94_a_batch_needs_all_its_operations(exports: Exports) -> None:
    """EX-94: otherwise nothing is created."""
    documents = [exports.document() for _ in range(3)]
    exports.producer.value("select exports.record_operation(%s, 98)", exports.user)
    with refused("EX004"):
        exports.batch(*documents)
    assert exports.jobs() == []
    exports.batch(*documents[:2])
    with refused("EX002"):
        exports.producer.value("select exports.record_operation(%s, 0)", exports.user)


def test_ex_95_a_user_has_at_most_twenty_live_jobs(exports: Exports) -> None:
    """EX-74, EX-95: renders that run are no reason to refuse a single export."""
    exports.set(jobs_per_user=4)
    jobs = [exports.create() for _ in range(4)]
    exports.claim()
    exports.claim()
    exports.claim()
    with refused("EX005", "please wait"):
        exports.create()
    exports.complete(jobs[0])
    exports.create()
    assert exports.job(jobs[3]).status == "pending"


def test_ex_95_the_queue_has_a_depth(exports: Exports) -> None:
    """EX-48, EX-74, EX-95: for everybody, and of what waits nothing is lost."""
    exports.limit("exports-renders", depth_limit=2)
    exports.create()
    exports.create(user=exports.person())
    with refused("EX005"):
        exports.create(user=exports.person())
    with refused("EX005"):
        exports.batch(exports.document())
    assert [job.status for job in exports.jobs()] == ["pending"] * 2


def test_ex_03_the_numbers_of_the_service(exports: Exports) -> None:
    """EX-03, EX-16, EX-18, EX-62, EX-95: as an operator sees them."""
    (settings,) = exports.rows("select * from exports.settings")
    assert (settings.storage_bytes, settings.jobs_per_user) == (100 * 1024 * 1024, 20)
    assert (settings.documents_per_batch, settings.running_for_batch) == (10, 3)
    assert (settings.retention, settings.tombstones) == (timedelta(days=7), timedelta(days=30))
    limits = {
        row.name: row
        for row in exports.rows("select * from trunkline.limits where name like '%%exports%%'")
    }
    assert limits["exports-renders"].concurrency == 3
    assert limits["exports-renders"].depth_limit == 500
    assert limits["fair:exports/{tenant}"].share_cap == 2
    assert limits["exports-operations/{tenant}"].quota == 100


def test_ex_02_everything_is_in_this_database(exports: Exports) -> None:
    """EX-01, EX-02, EX-05: a request and its job are one transaction, and no other service."""
    document = exports.document()
    connection = exports.database.connect("trunkline_producer", autocommit=False)
    query = b"select exports.create_export_job(%s, %s, %s)"
    connection.execute(query, (document, Jsonb({}), exports.user))
    connection.rollback()
    assert exports.jobs() == []
    assert exports.claim() is None
    exports.create(document)
    assert exports.claim() is not None


def test_ex_04_the_budget_of_a_request_is_a_bounded_number_of_statements(exports: Exports) -> None:
    """EX-04: creation and claim read by index, whatever is in the queue."""
    plans = exports.rows(
        "select i.indexrelid::regclass::text as name from pg_index as i"
        " where i.indrelid in ('exports.requests'::regclass, 'exports.export_history'::regclass)"
        " and i.indisvalid"
    )
    assert {"exports.requests_open", "exports.export_history_user_idx"} <= {p.name for p in plans}
