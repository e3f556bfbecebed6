"""Cancellation, status, and what happens when a document or a user goes."""

from uuid import uuid4

from profiles.tests.exports.conftest import Exports, refused


def test_ex_35_a_waiting_job_is_cancelled_at_once(exports: Exports) -> None:
    """EX-35, EX-39, EX-93: and says so; a second request finds it ended."""
    job = exports.create()
    assert exports.cancel(job) == "cancelled"
    row = exports.job(job)
    assert (row.status, row.attempts, row.error_message) == ("cancelled", 0, "Cancelled")
    assert row.completed_at is not None
    with refused("EX008"):
        exports.cancel(job)


def test_ex_35_a_running_job_stops_at_its_next_step(exports: Exports) -> None:
    """EX-05, EX-35, EX-S04: later calls of its worker change nothing."""
    job = exports.create()
    exports.claim()
    assert exports.cancel(job) == "cancelling"
    assert exports.job(job).status == "processing"
    assert not exports.progress(job, 50)
    row = exports.job(job)
    assert (row.status, row.attempts) == ("cancelled", 1)
    assert exports.fail(job) is None
    assert (
        exports.worker.value("select exports.complete_job(%s, 'x', 1, 1, 'w1', %s)", job, "0" * 64)
        is False
    )
    assert exports.job(job).status == "cancelled"
    assert exports.history() == []


def test_ex_35_a_completion_after_the_request_is_refused(exports: Exports) -> None:
    """EX-27, EX-35, EX-S04: the worker has not seen the request yet; no file and no row remain."""
    job = exports.create()
    exports.claim()
    path = exports.upload(job)
    assert exports.cancel(job) == "cancelling"
    assert (
        exports.worker.value(
            "select exports.complete_job(%s, %s, 5, 1, 'w1', %s)", job, path, "0" * 64
        )
        is False
    )
    assert exports.job(job).status == "cancelled"
    assert exports.history() == []
    exports.operator.value("select trunkline.run_duty('sweep_artifacts')")
    exports.later("2 hours")
    removals = exports.rows("select path from trunkline.file_removals")
    assert [row.path for row in removals] == [path]


def test_ex_35_a_finished_job_cannot_be_cancelled(exports: Exports) -> None:
    exports.finish()
    (job,) = exports.jobs()
    with refused("EX008"):
        exports.cancel(job.id)


def test_ex_36_unknown_and_foreign_jobs_are_not_found(exports: Exports) -> None:
    """EX-36, EX-39: neither read nor cancelled."""
    job = exports.create()
    other = exports.person()
    assert exports.status(job)["status"] == "pending"
    assert exports.status(job, other) is None
    assert exports.status(uuid4()) is None
    for user, target in ((other, job), (exports.user, uuid4())):
        with refused("EX007"):
            exports.cancel(target, user)
    assert exports.job(job).status == "pending"


def test_ex_37_the_status_has_a_file_while_there_is_one(exports: Exports) -> None:
    """EX-37, EX-38: absent before completion and after expiry; never a stored link."""
    job = exports.create()
    assert exports.status(job)["file"] is None
    exports.claim()
    exports.progress(job, 50)
    assert (exports.status(job)["status"], exports.status(job)["progress"]) == ("processing", 50)
    exports.complete(job)
    done = exports.status(job)
    assert (done["status"], done["progress"], done["error"]) == ("completed", 100, None)
    assert done["file"]["path"] == exports.history_of(job).file_path
    assert "http" not in done["file"]["path"]
    exports.later("7 days 1 second")
    assert exports.status(job)["file"] is None


def test_ex_09_deleting_a_document_cancels_its_exports(exports: Exports) -> None:
    """EX-07, EX-09: waiting and running ones; the history remains without the document."""
    document = exports.document()
    done = exports.create(document)
    exports.claim()
    exports.complete(done)
    waiting = exports.create(document, quality="high")
    running = exports.create(document, quality="draft")
    exports.claim()
    exports.claim()
    exports.producer.connection.execute("delete from exports.documents where id = %s", (document,))
    for job in (waiting, running):
        assert not exports.progress(job, 50)
        row = exports.job(job)
        assert (row.status, row.error_message) == ("cancelled", "The document was deleted")
    history = exports.history_of(done)
    assert (history.document_id, history.file_name) == (None, "CV.pdf")
    assert len(exports.history()) == 1


def test_ex_09_a_document_that_goes_while_it_is_stored_leaves_nothing(exports: Exports) -> None:
    document = exports.document()
    job = exports.create(document)
    exports.claim()
    path = exports.upload(job)
    exports.producer.connection.execute("delete from exports.documents where id = %s", (document,))
    assert (
        exports.worker.value(
            "select exports.complete_job(%s, %s, 5, 1, 'w1', %s)", job, path, "0" * 64
        )
        is False
    )
    assert (exports.job(job).status, exports.history()) == ("cancelled", [])


def test_ex_99_deleting_a_user_removes_everything(exports: Exports) -> None:
    """EX-06, EX-99: jobs, history rows, documents and files; others keep theirs."""
    other = exports.person()
    kept = exports.create(user=other)
    exports.claim()
    exports.complete(kept)
    done = exports.create()
    exports.claim()
    exports.complete(done)
    path = exports.history_of(done).file_path
    running, waiting = exports.create(), exports.create()
    exports.claim()
    unfinished = exports.upload(running)
    exports.operator.connection.execute("delete from exports.people where id = %s", (exports.user,))
    assert [job.id for job in exports.jobs()] == [kept]
    assert [row.user_id for row in exports.history()] == [other]
    assert exports.rows("select * from exports.documents where user_id = %s", exports.user) == []
    assert not exports.progress(running, 90)
    states = exports.rows(
        "select state from trunkline.jobs where job_id = any(%s)", [running, waiting]
    )
    assert {row.state for row in states} == {"cancelled"}
    exports.operator.value("select trunkline.run_duty('sweep_artifacts')")
    removals = {row.path for row in exports.rows("select path from trunkline.file_removals")}
    assert removals == {path, unfinished}
    assert exports.owner.execute("select current_setting('trunkline.tenant', true)") is not None


def test_ex_99_users_of_a_platform_are_followed(exports: Exports) -> None:
    """EX-24, EX-99: where auth.users exists, its names and its deletions count."""
    superuser = exports.database.superuser()
    for statement in (
        "create schema auth",
        "create table auth.users (id uuid primary key, raw_user_meta_data jsonb)",
        "grant usage on schema auth to trunkline_owner",
        "grant select, trigger on auth.users to trunkline_owner",
    ):
        superuser.execute(statement.encode())
    exports.install_again()
    user = uuid4()
    superuser.execute('insert into auth.users values (%s, \'{"full_name": "Bea"}\')', (user,))
    job = exports.create(user=user)
    exports.claim()
    (found,) = exports.rows(
        "select author from exports.export_input(%s, 'w1')", job, calls=exports.worker
    )
    assert found.author == "Bea"
    exports.complete(job)
    superuser.execute("delete from auth.users where id = %s", (user,))
    assert (exports.jobs(), exports.history()) == ([], [])


def test_ex_70_errors_name_no_files_and_no_statements(exports: Exports) -> None:
    """EX-70: whatever a library says, users read one of a few texts."""
    job = exports.create()
    exports.claim()
    exports.fail(job, "psycopg.Error: select secret from /etc/passwd at 10.0.0.1")
    assert exports.job(job).error_message == "The export failed."
    assert exports.status(job)["error"] == "The export failed."
