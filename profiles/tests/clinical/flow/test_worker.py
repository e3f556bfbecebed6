"""The worker of the profile: its environment, its log, and its end by each kind of signal."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profiles.tests.clinical.conftest import TYPES
from profiles.tests.clinical.flow.conftest import KEY, Scene
from trunkline import Trunkline
from trunkline.errors import ProfileError
from trunkline_profiles.clinical import tasks
from trunkline_profiles.clinical.__main__ import options
from trunkline_profiles.clinical.handlers.files import Folder, left_by
from trunkline_profiles.clinical.handlers.providers import providers
from trunkline_profiles.clinical.handlers.tools import Tools

ALL = Tools("convert", "pdftoppm", "tesseract")


def log_lines(scene: Scene) -> list[dict[str, Any]]:
    return [json.loads(line) for line in scene.log.read_text().splitlines()]


def test_cp_66_the_environment_configures_a_worker() -> None:
    """CP-66: 50 jobs at once unless told otherwise, and a prefix of its id."""
    assert options({}).concurrency == 50
    told = options({"WORKER_CONCURRENCY": "7", "WORKER_NAME_PREFIX": "ocr"})
    assert (told.concurrency, told.name, told.grace) == (7, "ocr", 30)
    for variable in ("WORKER_CONCURRENCY", "WORKER_GRACE_SECONDS"):
        with pytest.raises(ProfileError, match=variable):
            options({variable: "many"})


def as_worker(scene: Scene) -> str:
    """A login with the rights of a worker and no others."""
    return f"{scene.clinic.database.superuser_dsn}&options=-c%20role%3Dtrunkline_worker"


def test_cp_83_a_worker_does_its_part_with_the_rights_of_a_worker(scene: Scene) -> None:
    """CP-83: the slow work, correlation ids, patients in the audit, errors with a stable code."""
    scene.work(TRUNKLINE_DSN=as_worker(scene))
    good = scene.upload()
    bad = scene.upload(b"%PDF-1.4 nothing", name="bad.pdf", kind="application/pdf")
    scene.wait(lambda: scene.clinic.row(bad.job_id).status == "failed", "the check failed")
    scene.finished(good.file_id)
    jobs = [*scene.jobs(good.file_id), *scene.jobs(bad.file_id)]
    assert [job.correlation_id for job in jobs] == [
        str(one.file_id) for one in (good, bad) for _ in range(6)
    ]
    for job in jobs:
        events = scene.clinic.audit(job.id)
        assert {event.patient_id for event in events} == {scene.clinic.patient}
    details = scene.clinic.row(bad.job_id).error_details
    assert details["dead_letter_reason"] == "not_retryable"
    assert details["message"].startswith("damaged: ")
    told = {line.get("job_id") for line in log_lines(scene)}
    assert told >= {str(job.id) for job in jobs if job.status != "cancelled"}


def test_cp_66_ids_are_unique_and_credentials_stay_where_they_are(scene: Scene) -> None:
    """CP-66, CP-78: two processes of one service; keys are in their environment alone."""
    for _ in range(2):
        scene.work(TRUNKLINE_DSN=as_worker(scene), WORKER_NAME_PREFIX="clinic")
    made = scene.upload()
    scene.finished(made.file_id)
    found = scene.clinic.rows("select worker, pid from trunkline.workers")
    assert len({row.worker for row in found}) == len(found) == 2
    assert all(row.worker.startswith(f"clinic-{row.pid}-") for row in found)
    assert {row.pid for row in found} == {worker.pid for worker in scene.workers}
    # The provider took only calls with its key; nothing of it is in log, jobs or audit.
    assert scene.provider.account().served == 3
    kept = scene.clinic.rows(
        "select to_jsonb(q)::text as text from clinical.job_queue as q"
        " union all select to_jsonb(a)::text from clinical.audit_log as a"
    )
    assert KEY not in scene.log.read_text() + "".join(row.text for row in kept)


def test_cp_71_every_line_of_a_job_has_its_id(scene: Scene) -> None:
    """CP-71, CP-67: beginning and end of each job with id and type."""
    scene.provider.fail()
    scene.work()
    made = scene.upload()
    scene.wait(lambda: any(job.retry_count for job in scene.jobs(made.file_id)), "a failure")
    scene.later("50 seconds")
    scene.finished(made.file_id)
    jobs = {str(job.id): job.job_type for job in scene.jobs(made.file_id)}
    lines = log_lines(scene)
    about = [line for line in lines if "task" in line]
    assert {line["job_id"]: line["task"] for line in about} == jobs
    assert {line["correlation_id"] for line in about} == {str(made.file_id)}
    started = [line for line in about if line["message"] == "started"]
    assert [line["task"] for line in started].count("ai_queue_pass1") == 2
    assert {line["job_id"] for line in about if line["message"] == "done"} == jobs.keys()
    assert any("failed" in line["message"] and line["level"] == "warning" for line in about)


def test_cp_70_a_worker_without_tools_leaves_ocr_to_others(scene: Scene, tmp_path: Path) -> None:
    """CP-70: it says so, serves the rest, and claims no such job."""
    bare = tmp_path / "bin"
    bare.mkdir()
    scene.work(PATH=str(bare), WORKER_NAME_PREFIX="bare")
    made = scene.upload()
    scene.wait(lambda: scene.jobs(made.file_id)[0].completed_at, "the security check is done")
    refusals = [line for line in log_lines(scene) if "not served" in line["message"]]
    assert any(
        line["message"].startswith("fast_queue_ocr") and "tesseract" in line["message"]
        for line in refusals
    )
    # Another document passes it by, while OCR waits.
    other = scene.upload(name="other.png")
    scene.wait(lambda: scene.jobs(other.file_id)[0].completed_at, "another check is done")
    ocr = scene.jobs(made.file_id)[1]
    assert (ocr.job_type, ocr.status) == ("fast_queue_ocr", "pending")
    assert ocr.waiting_reason is None
    scene.work(WORKER_NAME_PREFIX="full")
    scene.finished(made.file_id, other.file_id)
    ((worker,),) = scene.clinic.rows("select worker from trunkline.jobs where job_id = %s", ocr.id)
    assert worker.startswith("full-")


def test_cp_74_sigterm_hands_back_without_a_retry(scene: Scene) -> None:
    """CP-74: no new claim, and the job in its call is another worker's at once."""
    scene.provider.hold.clear()
    stopped = scene.work(WORKER_GRACE_SECONDS="0")
    made = scene.upload()
    scene.wait(scene.provider.under_way, "a call is under way")
    (job,) = (job for job in scene.jobs(made.file_id) if job.status == "processing")
    stopped.send_signal(signal.SIGTERM)
    assert stopped.wait(60) == 0
    row = scene.clinic.row(job.id)
    assert (row.status, row.retry_count, row.worker_id) == ("pending", 0, None)
    assert scene.clinic.limit().active_requests == 0
    scene.provider.hold.set()
    scene.work()
    scene.finished(made.file_id)
    assert scene.clinic.row(job.id).retry_count == 0


def test_cp_74_sigterm_lets_running_jobs_end(scene: Scene) -> None:
    """CP-74: within the grace; the next stage is left to others."""
    scene.provider.hold.clear()
    stopped = scene.work()
    made = scene.upload()
    scene.wait(scene.provider.under_way, "a call is under way")
    stopped.send_signal(signal.SIGTERM)
    scene.wait(lambda: "shutting down" in scene.log.read_text(), "it stops")
    scene.provider.hold.set()
    assert stopped.wait(60) == 0
    assert [(job.job_type, job.status) for job in scene.jobs(made.file_id)][3:] == [
        ("ai_queue_pass1", "completed"),
        ("ai_queue_pass2", "pending"),
        ("ai_queue_pass3", "pending"),
    ]


def test_cp_59_a_killed_worker_gives_its_slot_back(scene: Scene) -> None:
    """CP-59, CP-31, CP-32: after the timeout, with one more retry."""
    scene.provider.hold.clear()
    killed = scene.work()
    made = scene.upload()
    scene.wait(scene.provider.under_way, "a call is under way")
    (job,) = (job for job in scene.jobs(made.file_id) if job.status == "processing")
    assert scene.clinic.limit().active_requests == 1
    killed.kill()
    killed.wait()
    scene.later("301 seconds")
    row = scene.clinic.row(job.id)
    assert (row.status, row.retry_count) == ("pending", 1)
    assert row.error_details["error_type"] == "worker_timeout"
    assert scene.clinic.limit().active_requests == 0
    scene.later("61 seconds")
    scene.provider.hold.set()
    scene.work()
    scene.finished(made.file_id)
    assert scene.provider.account().calls == 4


def test_cp_40_a_worker_that_was_declared_dead_writes_nothing(scene: Scene) -> None:
    """CP-40, CP-47, CP-95: it wakes up after another one has done its job; that stays as it is."""
    scene.provider.hold.clear()
    frozen = scene.work(WORKER_NAME_PREFIX="frozen")
    made = scene.upload()
    scene.wait(scene.provider.under_way, "a call is under way")
    (job,) = (job for job in scene.jobs(made.file_id) if job.status == "processing")
    frozen.send_signal(signal.SIGSTOP)
    scene.later("301 seconds")
    scene.later("61 seconds")
    scene.provider.hold.set()
    scene.work(WORKER_NAME_PREFIX="second")
    scene.finished(made.file_id)
    before = scene.clinic.rows("select * from clinical.clinical_records order by id")
    left = left_by(scene.clinic.patient, made.file_id, "ai_queue_pass1")
    scene.store.write(scene.clinic.patient, left, b"what the second one left")
    frozen.send_signal(signal.SIGCONT)
    scene.wait(lambda: "was lost" in scene.log.read_text(), "it notices")
    frozen.terminate()
    assert frozen.wait(60) == 0
    assert scene.clinic.rows("select * from clinical.clinical_records order by id") == before
    assert scene.store.read(scene.clinic.patient, left) == b"what the second one left"
    assert [one.job_type for one in scene.jobs(made.file_id)].count("ai_queue_pass2") == 1
    ((worker,),) = scene.clinic.rows("select worker from trunkline.jobs where job_id = %s", job.id)
    assert worker.startswith("second-")


def test_cp_10_a_host_with_everything_serves_all_types(tmp_path: Path) -> None:
    """CP-10, CP-70: all twelve; times and limits are left to the rows of the profile."""
    environment = {
        f"TRUNKLINE_CLINICAL_URL_{name}": "http://127.0.0.1:1"
        for name in ("OPENAI", "NOTIFICATIONS", "CONSENT")
    }
    store = Folder(tmp_path)
    services = tasks.Services(
        files=store, tools=ALL, backup=store, providers=providers(environment)
    )
    app = Trunkline("postgresql:///nowhere")
    declared = tasks.build(app, services)
    assert tuple(declared) == TYPES == tasks.TYPES
    for task in declared.values():
        assert task.policy.queue == "clinical"
        assert task.policy.lease is task.policy.hard_limit is task.policy.max_attempts is None
    assert tasks.unserved(tasks.Services(files=store, tools=Tools())).keys() == {
        "fast_queue_ocr",
        *TYPES[3:6],
        "notification_delivery",
        "consent_verification",
        "backup_operation",
    }


def test_without_httpx2_nothing_that_calls_a_provider_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {
        f"TRUNKLINE_CLINICAL_URL_{name}": "http://nowhere.invalid"
        for name in ("OPENAI", "NOTIFICATIONS", "CONSENT")
    }
    monkeypatch.setitem(sys.modules, "httpx2", None)
    store = Folder(tmp_path)
    services = tasks.Services(
        files=store, tools=ALL, backup=store, providers=providers(environment)
    )
    unserved = tasks.unserved(services)
    assert unserved.keys() == {*TYPES[3:6], "notification_delivery", "consent_verification"}
    assert all(
        "pip install 'trunkline-profiles[clinical]'" in reason for reason in unserved.values()
    )


def test_the_environment_must_say_where_files_are() -> None:
    """With what to do about it, and without a trace of our own code."""
    environment = {k: v for k, v in os.environ.items() if k != "TRUNKLINE_CLINICAL_STORE"}
    done = subprocess.run(
        [sys.executable, "-m", "trunkline_profiles.clinical"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "Set TRUNKLINE_CLINICAL_STORE" in done.stderr
    assert "Code: profile_error" in done.stderr
    assert "Traceback" not in done.stderr


def test_keys_of_providers_are_not_shown() -> None:
    """CP-66: only in the header of a call."""
    found = providers(
        {"TRUNKLINE_CLINICAL_URL_MY_LAB": "http://x/v1/", "TRUNKLINE_CLINICAL_KEY_MY_LAB": KEY}
    )
    assert found.keys() == {"my-lab"}
    assert found["my-lab"].headers == {"Authorization": f"Bearer {KEY}"}
    assert found["my-lab"].address("chat") == "http://x/v1/chat"
    assert KEY not in repr(found)
