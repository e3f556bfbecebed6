"""The job types beside the pipeline, on a real worker."""

import hashlib
import json
from collections.abc import Iterator

import pytest

from profiles.tests.clinical.flow.conftest import Scene
from trunkline_profiles.clinical.handlers.files import Folder
from trunkline_profiles.executor.stubs.server import Answer, StubServer, as_json


class Desk(StubServer):
    """Takes messages, and knows who agreed."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, dict[str, object]]] = []
        self.consent: object = True
        super().__init__()

    def handle(self, method: str, path: list[str], headers: dict[str, str], body: bytes) -> Answer:
        assert method == "POST"
        asked = json.loads(body)
        self.taken.append((headers["idempotency-key"], asked))
        return as_json(200, {"consent": self.consent} if path == ["consent"] else {"queued": True})


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk() as made:
        yield made


def test_operations_of_a_file(scene: Scene, desk: Desk) -> None:
    """CP-10: report, backup, notification and consent, each for the patient of the file."""
    backup = Folder(scene.folder / "backup")
    scene.work(
        TRUNKLINE_CLINICAL_BACKUP=str(backup.root),
        TRUNKLINE_CLINICAL_URL_NOTIFICATIONS=f"{desk.url}/messages",
        TRUNKLINE_CLINICAL_URL_CONSENT=f"{desk.url}/consent",
    )
    made = scene.upload()
    scene.finished(made.file_id)
    file, patient = str(made.file_id), scene.clinic.patient

    told = scene.result(scene.chore("report_generation", shell_file_id=file))
    assert told["records"] == 6
    report = json.loads(scene.store.read(patient, told["path"]))
    assert {record["kind"] for record in report["records"]} >= {"facts", "narrative"}

    copied = scene.result(scene.chore("backup_operation", shell_file_id=file))
    copy = backup.read(patient, copied["path"])
    assert hashlib.sha256(copy).hexdigest() == copied["sha256"]
    assert copy == scene.store.read(patient, scene.file(made.file_id).storage_path)

    job = scene.chore("notification_delivery", shell_file_id=file, message="Your report is ready")
    assert scene.result(job)["delivered"] is True
    assert desk.taken == [
        (
            str(job),
            {
                "patient_id": str(patient),
                "shell_file_id": file,
                "message": "Your report is ready",
            },
        )
    ]

    desk.consent = False
    assert scene.result(scene.chore("consent_verification", shell_file_id=file)) == {
        "consent": False
    }
    assert scene.records(made.file_id)["consent"] == {"consent": False}
    desk.consent = "perhaps"
    job = scene.chore("consent_verification", shell_file_id=file)
    scene.wait(lambda: scene.clinic.row(job).retry_count == 1, "the answer was not taken")
    assert scene.records(made.file_id)["consent"] == {"consent": False}


def test_audit_cleanup_keeps_events_for_good(scene: Scene) -> None:
    """CP-10, CP-26: what the engine would forget is taken over; nothing is told twice."""
    scene.work()
    made = scene.upload()
    scene.finished(made.file_id)
    events = "select count(*) as n from clinical.audit_log where table_name = 'job_queue'"
    before = scene.clinic.rows(events)[0].n
    kept = scene.result(scene.chore("audit_cleanup", older_than="0 seconds"))["kept"]
    # The events of the chore itself came on top.
    assert kept >= before >= 12
    scene.wait(lambda: scene.clinic.rows(events)[0].n == before + 3, "the chore is on record")


def test_a_report_needs_something_to_report(scene: Scene) -> None:
    """Dead at once: another attempt would find nothing either."""
    scene.work(PATH="/nowhere")
    job = scene.chore("report_generation", shell_file_id=str(scene.clinic.file))
    scene.wait(lambda: scene.clinic.row(job).status == "failed", "the job is dead")
    row = scene.clinic.row(job)
    assert (len(row.error_details["history"]), row.dead_letter_at is not None) == (1, True)
    assert "has no records" in json.dumps(row.error_details)
