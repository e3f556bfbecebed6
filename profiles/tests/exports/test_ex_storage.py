"""Storage and history: what is counted, reserved, freed and removed."""

import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from profiles.tests.exports.conftest import MIB, Exports, refused
from tests.support.databases import Database
from tests.support.internals import storage


def download(exports: Exports, history: UUID, user: UUID | None = None) -> int:
    with exports.acting(user) as calls:
        count: int = calls.value("select exports.count_download(%s)", history)
        return count


def delete(exports: Exports, history: UUID, user: UUID | None = None) -> bool:
    with exports.acting(user) as calls:
        told: bool = calls.value("select exports.delete_export(%s)", history)
        return told


def removals(exports: Exports) -> set[str]:
    return {row.path for row in exports.rows("select path from trunkline.file_removals")}


def remove_files(exports: Exports, *errors: str) -> None:
    """Do what the sweeper of a worker does with its store."""
    paths = exports.worker.value("select array_agg(t) from trunkline.take_removals('w1', 100) as t")
    exports.worker.value(
        "select trunkline.report_removals('w1', %s, %s)",
        *(paths, [errors[0] if errors else None for _ in paths]),
    )


def quota(exports: Exports, user: UUID | None = None) -> Any:
    (row,) = exports.rows(
        "select * from exports.check_storage_quota(%s)",
        user or exports.user,
        calls=exports.producer,
    )
    return row


def test_ex_62_a_full_storage_refuses_with_figures(exports: Exports) -> None:
    """EX-12, EX-62, EX-75, EX-S07: used, reserved and the new file count."""
    size = 209_715
    for _ in range(499):
        exports.seed(size)
    exports.seed(104_752_742 - 499 * size)
    assert (quota(exports).usedMB, quota(exports).limitMB) == (Decimal("99.90"), 100)
    with refused("EX006", r"99\.90MB / 100MB") as error:
        exports.create()
    detail = json.loads(error.value.diag.message_detail)
    assert (float(detail["usedMB"]), float(detail["limitMB"])) == (99.9, 100)
    assert exports.jobs() == []
    assert not quota(exports).allowed
    assert quota(exports, exports.person()).allowed


def test_ex_62_jobs_in_flight_reserve_an_estimate(exports: Exports) -> None:
    """EX-62: 1 MB until sizes are known; what has ended reserves nothing."""
    exports.set(storage_bytes=3 * MIB)
    jobs = [exports.create() for _ in range(3)]
    assert (quota(exports).usedMB, quota(exports).allowed) == (3, False)
    with refused("EX006"):
        exports.create()
    exports.cancel(jobs[2])
    assert quota(exports).usedMB == 2
    exports.claim()
    exports.complete(jobs[0], size=1000)
    exports.create()
    # From now on an export of this user is expected to have 1000 bytes.
    reserved = exports.owner.execute(
        "select reserved_bytes from exports.requests order by created_at desc limit 1"
    ).fetchone()
    assert reserved == (1000,)


def test_ex_62_parallel_requests_reserve_no_more_than_there_is(exports: Exports) -> None:
    exports.set(storage_bytes=2 * MIB)
    documents = [exports.document() for _ in range(6)]
    connections = [exports.database.connect("trunkline_producer") for _ in documents]

    def ask(pair: Any) -> bool:
        query = b"select exports.create_export_job(%s, '{}', %s)"
        try:
            pair[0].execute(query, (pair[1], exports.user))
        except Exception as error:  # noqa: BLE001 - only this refusal is expected
            return getattr(error, "sqlstate", None) != "EX006"
        return True

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(ask, zip(connections, documents, strict=True)))
    assert sum(made) == len(exports.jobs()) == 2


def test_ex_63_a_storage_that_is_full_at_the_end_fails_for_good(exports: Exports) -> None:
    """EX-33, EX-63: nothing is published."""
    job = exports.create()
    exports.claim()
    exports.set(storage_bytes=5000)
    with refused("EX006"):
        exports.complete(job, size=5001)
    assert exports.history() == []
    assert exports.fail(job, "storage_full:", permanent=True) == "failed"
    assert "storage is full" in exports.job(job).error_message


def test_ex_89_deleting_an_export_frees_its_space_at_once(exports: Exports) -> None:
    """EX-62, EX-89, EX-S07: the file is queued for removal; a repetition changes nothing."""
    exports.set(storage_bytes=MIB)
    history = exports.finish(size=MIB)
    path = exports.history()[0].file_path
    with refused("EX006"):
        exports.create()
    other = exports.person()
    for target, user in ((history, other), (uuid4(), exports.user)):
        with refused("EX011"):
            delete(exports, target, user)
    assert delete(exports, history) is True
    assert quota(exports).usedMB == 0
    assert removals(exports) == {path}
    assert delete(exports, history) is False
    with refused("EX012"):
        download(exports, history)
    exports.set(storage_bytes=2 * MIB)
    exports.create()
    with exports.acting() as calls:
        assert exports.rows("select * from exports.list_history()", calls=calls) == []


def test_ex_59_fifty_downloads_at_once_count_fifty(exports: Exports) -> None:
    """EX-59: atomically."""
    history = exports.finish()
    connections = [exports.database.connect("trunkline_producer") for _ in range(10)]

    def load(connection: Any) -> None:
        for _ in range(5):
            connection.execute(b"select exports.count_download(%s)", (history,))

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(load, connections))
    assert exports.history()[0].download_count == 50


def test_ex_58_downloads_of_others_and_of_expired_files(exports: Exports) -> None:
    """EX-58, EX-60: 404 for what is not yours, 410 for what is over; neither is counted."""
    history = exports.finish()
    assert download(exports, history) == 1
    for target, user in ((history, exports.person()), (uuid4(), exports.user)):
        with refused("EX011"):
            download(exports, target, user)
    exports.later("7 days 1 second")
    with refused("EX012"):
        download(exports, history)
    assert exports.history()[0].download_count == 1


def test_ex_61_the_history_is_newest_first_and_ones_own(exports: Exports) -> None:
    """EX-61, EX-68: by pages."""
    mine = [exports.finish() for _ in range(3)]
    other = exports.person()
    exports.seed(10, other)
    with exports.acting() as calls:
        rows = exports.rows("select * from exports.list_history()", calls=calls)
        assert [row.id for row in rows] == mine[::-1]
        (first,) = exports.rows("select * from exports.list_history(1)", calls=calls)
        rest = exports.rows(
            "select * from exports.list_history(10, %s)", first.created_at, calls=calls
        )
        assert [row.id for row in rest] == mine[1::-1]
    with exports.acting(other) as calls:
        assert len(exports.rows("select * from exports.list_history()", calls=calls)) == 1


def test_ex_64_the_cleanup_marks_what_is_really_gone(exports: Exports) -> None:
    """EX-60, EX-64, EX-84, EX-S08: 410 for 30 days more, then 404."""
    history = exports.finish()
    kept = exports.finish()
    path = exports.history()[0].file_path
    exports.owner.execute(
        "update exports.export_history set expires_at = trunkline.clock() - interval '1 day'"
        " where id = %s",
        (history,),
    )
    assert exports.operator.value("select exports.run_cleanup()") == 1
    assert exports.operator.value("select exports.run_cleanup()") == 0
    assert removals(exports) == {path}
    mark = "select trunkline.run_duty('exports_mark_removed')"
    # The store could not delete it: the row is not marked, and the file is tried again.
    remove_files(exports, "the disk is read-only")
    exports.operator.value(mark)
    row = next(row for row in exports.history() if row.id == history)
    assert (row.deleted_at, row.removal_queued_at is not None) == (None, True)
    with refused("EX012"):
        download(exports, history)
    exports.later("1 hour")
    remove_files(exports)
    assert removals(exports) == set()
    exports.operator.value(mark)
    row = next(row for row in exports.history() if row.id == history)
    assert row.deleted_at is not None
    with refused("EX012"):
        download(exports, history)
    exports.later("29 days")
    exports.worker.value("select exports.continue_cleanup()")
    with refused("EX012"):
        download(exports, history)
    exports.later("2 days")
    exports.worker.value("select exports.continue_cleanup()")
    with refused("EX011"):
        download(exports, history)
    assert [row.id for row in exports.history()] == [kept]


def test_ex_64_one_failure_does_not_stop_the_rest(exports: Exports) -> None:
    """EX-64, EX-80: the row is retried by the next run; the metrics raise an alert."""
    broken, good = exports.finish(), exports.finish()
    exports.later("8 days")
    superuser = exports.database.superuser()
    artifact = exports.history()[0].artifact_id
    with storage.refusing_changes(superuser, artifact):
        assert exports.operator.value("select exports.run_cleanup()") == 1
        rows = {row.id: row for row in exports.history()}
        assert rows[broken].removal_queued_at is None
        assert rows[good].removal_queued_at is not None
        assert exports.metric("cleanup_failed_last_day") == (1, True)
    assert exports.operator.value("select exports.run_cleanup()") == 1


def test_ex_65_the_cleanup_goes_in_pages_and_twice_at_once(exports: Exports) -> None:
    """EX-65: a full page enqueues the next one; two runs share the rows."""
    for _ in range(7):
        exports.seed(10)
    exports.later("8 days")
    assert exports.operator.value("select exports.run_cleanup(3)") == 3
    first = exports.database.connect("trunkline_operator", autocommit=False)
    assert first.execute("select exports.run_cleanup(2)").fetchone() == (2,)
    assert exports.operator.value("select exports.run_cleanup(5)") == 2
    first.commit()
    assert all(row.removal_queued_at is not None for row in exports.history())
    for _ in range(501):
        exports.seed(1)
    exports.later("16 days")
    assert exports.worker.value("select exports.continue_cleanup(7)") == 507
    (job,) = exports.rows("select * from trunkline.jobs where task = 'cleanup_expired_exports'")
    assert job.payload == {"deleted": 507}
    assert exports.worker.value("select exports.continue_cleanup(507)") == 508


def test_ex_64_the_cleanup_runs_at_two_in_the_morning(exports: Exports) -> None:
    (schedule,) = exports.rows("select * from trunkline.schedules")
    assert (schedule.schedule, schedule.cron) == ("cleanup-expired-exports", "0 2 * * *")
    assert (schedule.time_zone, schedule.task) == ("UTC", "cleanup_expired_exports")


def test_ex_66_only_administrators_clean_up_by_hand(exports: Exports, database: Database) -> None:
    """EX-66, EX-93: 403 for others; an administrator reaches the exports of all."""
    assert database is exports.database
    exports.seed(10)
    exports.seed(10, exports.person())
    exports.later("8 days")
    with exports.acting() as calls, refused("EX013"):
        call_cleanup(exports, calls)
    boss = exports.person(administrator=True)
    exports.operator.connection.execute(
        "select set_config('trunkline.tenant', %s, false)", (str(boss),)
    )
    assert exports.operator.value("select exports.run_cleanup()") == 2


def call_cleanup(exports: Exports, calls: Any) -> None:
    """As an operator who has narrowed the session to a user."""
    tenant = calls.value("select current_setting('trunkline.tenant')")
    operator = exports.database.connect("trunkline_operator")
    operator.execute("select set_config('trunkline.tenant', %s, false)", (tenant,))
    operator.execute("select exports.run_cleanup()")


def test_ex_67_old_jobs_are_purged(exports: Exports) -> None:
    """EX-67: after 30 days, unless they still wait; orphans are the sweep's, after 24 hours."""
    done = exports.create()
    exports.cancel(done)
    waiting = exports.create()
    exports.later("31 days")
    exports.worker.value("select exports.continue_cleanup()")
    assert [job.id for job in exports.jobs()] == [waiting]
    (setting,) = exports.rows("select value from trunkline.settings where name = 'orphan_age'")
    assert setting.value in {"1 day", "24:00:00", "24 hours"}


@pytest.mark.parametrize("name", ["export_jobs_user_idx", "export_history_user_idx"])
def test_ex_08_listing_reads_an_index(exports: Exports, name: str) -> None:
    """EX-08: of one user, newest first; expiry without a predicate on time."""
    (index,) = exports.rows("select pg_get_indexdef(('exports.' || %s)::regclass) as text", name)
    assert "(user_id, created_at DESC)" in index.text
    (expiry,) = exports.rows(
        "select pg_get_indexdef('exports.export_history_expires_idx'::regclass) as text"
    )
    assert "(expires_at)" in expiry.text
    assert "WHERE" not in expiry.text


def test_ex_80_metrics_cover_the_service(exports: Exports) -> None:
    """EX-79, EX-80: waits, runs by pages, retries, failures, storage, connections."""
    exports.finish(size=MIB)
    failed = exports.create()
    exports.claim()
    exports.fail(failed, "RenderTimeout", permanent=True)
    exports.create()
    assert exports.metric("jobs", "completed") == (1, False)
    assert exports.metric("jobs", "failed") == (1, True)
    assert exports.metric("jobs", "pending") == (1, False)
    assert exports.metric("retries").value == 0
    assert exports.metric("run_seconds_mean", "2 pages").value >= 0
    assert exports.metric("wait_seconds_p95").value >= 0
    assert exports.metric("storage_megabytes", str(exports.user)).value == 1
    assert exports.metric("connections").value >= 3
    (reason,) = exports.rows("select label from exports.metrics where metric = 'failures'")
    assert "Shorten the content" in reason.label
    exports.later("6 minutes")
    assert exports.metric("jobs", "pending").alert
