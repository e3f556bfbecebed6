"""The steps that put the service into operation."""

from typing import Any

import pytest

from profiles.tests.executor.test_cli import trunkline
from profiles.tests.exports.conftest import Exports, refused
from trunkline_profiles.exports import repository
from trunkline_profiles.exports.handlers.plain import PlainRenderer


def take(exports: Exports, step: str, plan: str = "checklist", *, dry_run: bool = False) -> Any:
    (row,) = exports.rows("select * from exports.run_step(%s, %s, %s)", plan, step, dry_run)
    return row


@pytest.mark.parametrize(
    "step", ["013_jobs", "014_history", "016_policies", "017_indexes", "018_claim"]
)
def test_ex_10_the_schema_steps_hold_after_the_installation(exports: Exports, step: str) -> None:
    """EX-10, EX-08, EX-87: 015 is not described by the source."""
    assert take(exports, step, dry_run=True).outcome == "would_do"
    assert take(exports, step).outcome == "done"


def test_ex_87_the_rest_follows_in_order(exports: Exports) -> None:
    """EX-80, EX-87: a worker, the schedule, and the first export."""
    assert take(exports, "worker_ready").detail["problems"] == [
        "no worker serves export_document",
        "no worker serves cleanup_expired_exports",
    ]
    exports.worker.value(
        "select trunkline.register_worker('w9', %s, %s, 'host', 1)",
        ["exports", "exports-cleanup"],
        ["export_document", "cleanup_expired_exports"],
    )
    assert take(exports, "worker_ready").outcome == "done"
    assert take(exports, "cleanup_scheduled").outcome == "done"
    assert take(exports, "first_export").outcome == "refused"
    job = exports.create()
    assert take(exports, "queue_drained", "rollback").outcome == "refused"
    exports.claim()
    exports.complete(job)
    assert take(exports, "first_export").outcome == "done"
    assert take(exports, "queue_drained", "rollback").outcome == "done"
    with refused("EX015"):
        take(exports, "015_nothing")


def test_ex_17_broken_limits_are_noticed(exports: Exports) -> None:
    exports.limit("exports-renders", concurrency=None)
    assert take(exports, "018_claim").outcome == "refused"


def test_ex_87_the_functions_have_the_names_of_the_source() -> None:
    """EX-15, EX-87, EX-96: create, fetch next, delay, fail, complete, status, cancel."""
    for name in (
        "create_export_job",
        "fetch_next_export_job",
        "calculate_retry_delay",
        "fail_job",
        "complete_job",
        "get_job_status",
        "cancel_job",
        "update_job_progress",
        "upload_export",
        "check_storage_quota",
        "process_export_queue",
        "reset_stuck_jobs",
    ):
        assert callable(getattr(repository, name))


def test_ex_96_a_worker_of_ones_own(exports: Exports, tmp_path: Any) -> None:
    """EX-13, EX-21, EX-86, EX-96: claims one after the other, with a pause, until none is due."""
    from trunkline.artifacts import LocalStore  # noqa: PLC0415

    store = LocalStore(tmp_path / "store")
    connection = exports.producer.connection
    row = repository.create_export_job(connection, exports.user, exports.document())
    assert row["status"] == "pending"
    other = exports.create()
    gone = exports.create(document := exports.document())
    exports.owner.execute("alter table exports.documents disable trigger document_deleted")
    connection.execute("delete from exports.documents where id = %s", (document,))
    pauses: list[float] = []
    done = repository.process_export_queue(
        exports.worker.connection, store, PlainRenderer(), "mine", pause=pauses.append
    )
    assert (done, pauses) == (3, [0.1] * 3)
    status = repository.get_job_status(connection, exports.user, row["id"])
    assert status is not None
    assert (status["status"], status["progress"]) == ("completed", 100)
    assert b"".join(store.read(status["file"]["path"])).startswith(b"%PDF")
    assert exports.job(other).status == "completed"
    assert exports.job(gone).error_message == "The document no longer exists."
    assert repository.check_storage_quota(connection, exports.user)["allowed"]
    assert repository.reset_stuck_jobs(exports.worker.connection) == 0
    third = exports.create()
    assert repository.cancel_job(connection, exports.user, third) == "cancelled"


def test_the_commands_work(exports: Exports) -> None:
    found = trunkline(exports.database, "steps", "exports")
    assert "first_export" in found.stdout
