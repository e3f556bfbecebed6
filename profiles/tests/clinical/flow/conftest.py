"""The pipeline at work: the profile, a folder of files, a provider that counts, real workers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from profiles.tests.clinical.conftest import Clinic
from tests.support import servers
from tests.support.servers import Server
from tests.support.waiting import until
from trunkline_profiles.clinical.handlers.files import Folder
from trunkline_profiles.clinical.stubs.provider import Model, Provider
from trunkline_profiles.clinical.stubs.scans import report_lines, scan

_T = TypeVar("_T")

KEY = "key-of-the-provider"


class Scene:
    """The environment of one test."""

    def __init__(self, clinic: Clinic, folder: Path) -> None:
        self.clinic = clinic
        self.folder = folder
        self.store = Folder(folder / "store")
        self.provider = Provider(Model(), key=KEY)
        self.workers: list[subprocess.Popen[bytes]] = []

    def work(self, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker process."""
        given = {
            "TRUNKLINE_DSN": self.clinic.database.dsn,
            "TRUNKLINE_CLINICAL_STORE": str(self.store.root),
            "TRUNKLINE_CLINICAL_URL_OPENAI": f"{self.provider.url}/v1",
            "TRUNKLINE_CLINICAL_KEY_OPENAI": KEY,
            "WORKER_CONCURRENCY": "8",
        }
        with self.log.open("ab") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "trunkline_profiles.clinical"],
                env=os.environ | given | environment,
                stdout=log,
                stderr=log,
            )
        self.workers.append(worker)
        return worker

    @property
    def log(self) -> Path:
        return self.folder / "workers.log"

    def upload(
        self,
        data: bytes | None = None,
        *,
        name: str = "scan.png",
        kind: str = "image/png",
        key: str | None = None,
        patient: UUID | None = None,
    ) -> Any:
        """Upload a file of the patient; return the result of submit_upload."""
        patient = patient or self.clinic.patient
        content = scan(report_lines(1)) if data is None else data
        path = self.store.write(patient, f"{patient}/{name}", content)
        facts = {"filename": name, "mime_type": kind, "size_bytes": len(content)}
        (found,) = self.clinic.rows(
            "select * from clinical.submit_upload(%s, %s, %s, %s)",
            patient,
            path,
            Jsonb(facts),
            key,
            calls=self.clinic.producer,
        )
        return found

    def chore(self, kind: str, **payload: Any) -> UUID:
        """Enqueue a job outside the pipeline."""
        found: UUID = self.clinic.producer.value(
            "select clinical.enqueue_job_v3(%s, 'test', %s)", kind, Jsonb(payload)
        )
        return found

    def result(self, job: UUID) -> Any:
        """Wait for a job and return its result."""
        self.wait(lambda: self.clinic.row(job).status == "completed", f"job {job} is done")
        return self.clinic.row(job).job_result

    def file(self, file: UUID) -> Any:
        (found,) = self.clinic.rows("select * from clinical.shell_files where id = %s", file)
        return found

    def jobs(self, file: UUID) -> list[Any]:
        """The jobs about a file, oldest first."""
        return self.clinic.rows(
            "select * from clinical.job_queue where job_payload ->> 'shell_file_id' = %s"
            " order by created_at, id",
            str(file),
        )

    def records(self, file: UUID) -> dict[str, Any]:
        """The records of a file, by kind."""
        rows = self.clinic.rows(
            "select * from clinical.clinical_records where shell_file_id = %s", file
        )
        return {row.record_kind: row.body for row in rows}

    def later(self, interval: str) -> None:
        """Let time pass, and wake workers that sleep until a job is due."""
        self.clinic.pass_time(interval)
        self.clinic.worker.connection.execute("select trunkline.run_duties()")

    def wait(self, condition: Callable[[], _T], what: str) -> _T:
        """Wait until a condition holds; fail if a worker ended by itself."""

        def look() -> _T:
            ended = [worker.poll() for worker in self.workers]
            # Not those that the test killed or stopped.
            if not all(code in {None, 0, -signal.SIGKILL} for code in ended):
                raise AssertionError(f"a worker ended: {ended}\n{self.log.read_text()[-3000:]}")
            # Reading all jobs costs the server more than the awaited work.
            time.sleep(0.05)
            return condition()

        try:
            return until(look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text()[-3000:]}") from error

    def finished(self, *files: UUID) -> None:
        """Wait until the pipelines of these files are complete."""
        for file in files:
            self.wait(lambda file=file: self.file(file).completed_at, f"file {file} is done")  # type: ignore[misc]

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.provider.close()
        for worker in self.workers:
            worker.wait()


@pytest.fixture(scope="session", params=servers.majors()[-1:], ids=lambda major: f"pg{major}")
def server(request: pytest.FixtureRequest) -> Server:
    """Only the newest server: workers behave the same on each, and their SQL is tested on all."""
    found = {server.major: server for server in request.config.stash[servers.STASH]}
    return found[request.param]


@pytest.fixture
def scene(clinic: Clinic, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(clinic, tmp_path)
    yield made
    made.close()
