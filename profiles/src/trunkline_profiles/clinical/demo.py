"""The pipeline end to end: scanned pages, a provider with limits, two workers, one of them killed.

It runs on a separate PostgreSQL in a temporary folder, with a lease of a few seconds. The provider
is a local stub that counts every call, so the account at the end is the provider's, not ours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from trunkline.errors import ProfileError, ProfileNeedsPackages
from trunkline.profiles import session, temporary_database
from trunkline_profiles.clinical import PROFILE
from trunkline_profiles.clinical.handlers import providers, security
from trunkline_profiles.clinical.handlers.files import Folder
from trunkline_profiles.clinical.handlers.tools import find_tools
from trunkline_profiles.clinical.stubs.provider import Provider, model_from
from trunkline_profiles.clinical.stubs.scans import report_lines, scan, typeset

__all__ = ["DOCUMENTS", "Account", "lines", "run"]

DOCUMENTS: Final = 12

_WORKERS: Final = 2
_PATIENTS: Final = 3
_ENDPOINT: Final = "openai/gpt-4o-mini"
# Small enough that jobs wait, and that workers without the limiter would exceed it.
_LIMIT: Final = {"requests_per_minute": 120, "tokens_per_minute": 90_000, "concurrency": 3}
# Calls that the provider refuses on purpose, and the seconds of Retry-After.
_REFUSALS: Final = 3
_REFUSED_FOR: Final = 2.0
_LATENCY: Final = (0.2, 1.2)
# Seconds for which the provider holds back responses, to find a worker in the middle of a call.
_HOLD: Final = 2.0
_KEY: Final = "demo"

Say = Callable[[str], None]


class Upload(NamedTuple):
    """A document to upload."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Account:
    """The documents, their outcome, and the calls that the provider saw."""

    documents: int
    uploads: int
    completed: int
    stopped: int
    waiting: int
    # Tools that are not installed here, so OCR did not run.
    missing: tuple[str, ...]
    records: int
    jobs: int
    jobs_completed: int
    jobs_dead: int
    reclaimed: int
    workers_killed: int
    endpoint: str
    # What is allowed, and the most that the provider counted in any minute.
    allowed: dict[str, int]
    used: dict[str, int]
    calls: int
    refused: int
    refused_on_purpose: int
    waited: int
    longest_wait: float
    # Every limit that was exceeded, and by how much.
    over: dict[str, int]
    # Tokens of all calls: as the provider counted them, and as charged here.
    tokens: int
    tokens_charged: int
    # Clinical data written without a patient.
    unaudited: int
    seconds: float

    @property
    def balanced(self) -> bool:
        """Whether all documents ended as they should and no limit was exceeded."""
        settled = self.waiting == 0 and self.reclaimed > 0 and self.workers_killed == 1
        return (
            self.documents == self.completed + self.stopped + self.waiting
            and self.stopped == self.jobs_dead == 1
            and not (self.over or self.unaudited)
            and self.refused == self.refused_on_purpose
            and (settled or bool(self.missing))
        )


class _Stage:
    """The database, the provider and the folders of one demonstration."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.dsn = stack.enter_context(temporary_database(PROFILE))
        model = model_from({"latency": _LATENCY, **_LIMIT})
        self.provider = stack.enter_context(
            Provider({_ENDPOINT.partition("/")[2]: model}, key=_KEY)
        )
        self.store = Folder(folder / "store")
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        stack.callback(self.stop)
        self.ask("shorten")
        self.ask("limit", endpoint=_ENDPOINT, **_LIMIT)

    def ask(self, question: str, **parameters: Any) -> list[tuple[Any, ...]]:
        with session(self.dsn, PROFILE) as opened:
            return opened.ask(f"demo_{question}", **parameters)

    def upload(self, patient: UUID, one: Upload) -> tuple[UUID, UUID]:
        """Upload as a client does: store the file, then submit it to the database."""
        path = self.store.write(patient, f"{patient}/{one.name}", one.data)
        facts = {
            "filename": one.name,
            "mime_type": one.media_type,
            "size_bytes": len(one.data),
        }
        ((file, job),) = self.ask(
            "upload", patient=patient, path=path, facts=Jsonb(facts), key=one.name
        )
        return file, job

    def start_worker(self) -> None:
        environment = os.environ | {
            "TRUNKLINE_DSN": self.dsn,
            "TRUNKLINE_CLINICAL_STORE": str(self.store.root),
            "TRUNKLINE_CLINICAL_URL_OPENAI": f"{self.provider.url}/v1",
            "TRUNKLINE_CLINICAL_KEY_OPENAI": _KEY,
            "WORKER_CONCURRENCY": "6",
            "WORKER_NAME_PREFIX": "clinic",
        }
        with (self.folder / "workers.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "trunkline_profiles.clinical"],
                env=environment,
                stdout=log,
                stderr=log,
            )
        self.processes[process.pid] = process

    def kill_a_busy_worker(self) -> str | None:
        """Kill a process that waits for the provider; None if there is none yet."""
        if not self.provider.under_way():
            return None
        # The provider sends no responses meanwhile. Soon every running pass is within its call, and
        # it still is when its worker dies.
        self.provider.hold.clear()
        end = time.monotonic() + _HOLD
        try:
            while time.monotonic() < end:
                calls = self.provider.under_way()
                for pid, worker in self.ask("busy_worker", pids=list(self.processes), calls=calls):
                    self.processes[pid].send_signal(signal.SIGKILL)
                    self.processes.pop(pid).wait()
                    return str(worker)
                time.sleep(0.05)
        finally:
            self.provider.hold.set()
        return None

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = {}


class _Play:
    """The steps of the demonstration."""

    def __init__(self, stage: _Stage, documents: int, deadline: float, say: Say) -> None:
        self._stage = stage
        self._documents = documents
        self._tell = say
        self._started = time.monotonic()
        self._deadline = deadline
        self._missing = find_tools().missing
        self._unserved = ["fast_queue_ocr"] if self._missing else []
        self._killed = 0
        self._lost = 0

    def _say(self, text: str) -> None:
        self._tell(f"{time.monotonic() - self._started:5.1f} s  {text}")

    def run(self) -> Account:
        stage, say = self._stage, self._say
        say(
            f"the provider allows {_LIMIT['requests_per_minute']} requests and"
            f" {_LIMIT['tokens_per_minute']:,} tokens a minute, {_LIMIT['concurrency']} at once;"
            f" it will refuse {_REFUSALS} calls on purpose"
        )
        if self._missing:
            say(f"not installed here: {', '.join(self._missing)}; the workers claim no OCR jobs")
        uploads = self._upload()
        stage.provider.refuse(_REFUSALS, retry_after=_REFUSED_FOR)
        say(f"starting {_WORKERS} workers")
        for _ in range(_WORKERS):
            stage.start_worker()
        self._watch()
        # As an operator's schedule would: record at the files why their pipelines stopped.
        stage.ask("maintain")
        self._watch(quietly=True)
        stage.stop()
        return self._account(uploads)

    def _upload(self) -> int:
        patients = [self._stage.ask("admit", name=f"Patient {n}")[0][0] for n in range(_PATIENTS)]
        documents = list(_documents(self._documents, scans=not self._missing))
        answers = [
            self._stage.upload(patients[number % _PATIENTS], one)
            for number, one in enumerate(documents)
        ]
        again = self._stage.upload(patients[0], documents[0])
        self._say(
            f"{len(documents)} documents uploaded, one of them twice: the second time it is"
            f" {'the same file and job' if again == answers[0] else 'ANOTHER FILE'}"
        )
        return len(answers) + 1

    def _watch(self, *, quietly: bool = False) -> None:
        """Wait until no job is left, and kill one worker meanwhile."""
        stage = self._stage
        while stage.ask("open", unserved=self._unserved)[0][0]:
            if time.monotonic() - self._started > self._deadline:
                log = (stage.folder / "workers.log").read_text(errors="replace")[-2000:]
                raise ProfileError(f"Not done within {self._deadline:.0f} s", hint=log)
            if not self._killed and (worker := stage.kill_a_busy_worker()):
                self._killed = 1
                self._say(f"killed {worker} in the middle of a call; starting another one")
                stage.start_worker()
            ((reclaimed,),) = stage.ask("reclaimed")
            if reclaimed > self._lost:
                self._say(f"{reclaimed - self._lost} of its jobs were silent for 3 s and are back")
                self._lost = reclaimed
            time.sleep(0.2)
        if not quietly:
            self._say("no jobs are left that these workers serve")

    def _account(self, uploads: int) -> Account:
        stage = self._stage
        files = stage.ask("files")
        for name, state, problem, _ in files:
            if state == "stopped":
                self._say(f"{name} was stopped: {problem}")
        states = [state for _, state, _, _ in files]
        ((jobs, done, dead, reclaimed, waited, longest, unaudited, charged),) = stage.ask(
            "jobs", endpoint=_ENDPOINT
        )
        seen = stage.provider.account()
        return Account(
            documents=len(files),
            uploads=uploads,
            completed=states.count("completed"),
            stopped=states.count("stopped"),
            waiting=states.count("waiting"),
            missing=self._missing,
            records=sum(records for _, _, _, records in files),
            jobs=jobs,
            jobs_completed=done,
            jobs_dead=dead,
            reclaimed=reclaimed,
            workers_killed=self._killed,
            endpoint=_ENDPOINT,
            allowed=dict(_LIMIT),
            used={
                "requests_per_minute": seen.most_calls_minute,
                "tokens_per_minute": seen.most_tokens_minute,
                "concurrency": seen.most_at_once,
            },
            calls=seen.calls,
            refused=seen.refused,
            refused_on_purpose=seen.refused_on_demand,
            waited=waited,
            longest_wait=round(longest, 1),
            over=seen.over,
            tokens=seen.tokens,
            tokens_charged=charged,
            unaudited=unaudited,
            seconds=round(time.monotonic() - self._started, 1),
        )


def run(
    documents: int = DOCUMENTS, *, deadline: float = 120.0, say: Say = lambda _: None
) -> Account:
    """Take documents through the pipeline and kill a worker on the way."""
    if (library := security.missing() or providers.missing()) is not None:
        raise ProfileNeedsPackages(
            f"The demonstration needs {library}",
            hint="Install it with: pip install 'trunkline-profiles[clinical]'",
        )
    with _stage() as stage:
        return _Play(stage, documents, deadline, say).run()


def lines(account: Account) -> Iterator[str]:
    """The account as text."""
    yield ""
    yield f"{'limit ' + account.endpoint:28}  allowed     used   over"
    names: Mapping[str, str] = {
        "requests_per_minute": "requests in any minute",
        "tokens_per_minute": "tokens in any minute",
        "concurrency": "calls at once",
    }
    for part, name in names.items():
        allowed, used, over = account.allowed[part], account.used[part], account.over.get(part, 0)
        yield f"  {name:26}  {allowed:7,}  {used:7,}  {over:5,}"
    yield ""
    facts = {
        "refused": f"{account.refused} of {account.calls} calls,"
        f" {account.refused_on_purpose} of them on purpose",
        "waited": f"{account.waited} jobs before a call, {account.longest_wait} s at most",
        "tokens": f"{account.tokens:,} as the provider counts, {account.tokens_charged:,} charged"
        " (calls of the killed worker stay charged as estimated)",
        "documents": f"{account.documents}: {account.completed} completed, {account.stopped}"
        f" stopped by the security check, {account.waiting} waiting",
        "jobs": f"{account.jobs}: {account.jobs_completed} completed, {account.jobs_dead} dead,"
        f" {account.reclaimed} taken back from the killed worker",
        "records": f"{account.records}, {account.unaudited} without their patient in the audit",
        "seconds": f"{account.seconds}",
        "balanced": "yes" if account.balanced else "NO",
    }
    if account.missing:
        facts["not installed"] = f"{', '.join(account.missing)}: OCR is left to other workers"
    for name, text in facts.items():
        yield f"{name:14}{text}"
    if account.missing:
        yield ""
        yield "To see all of it: apt-get install imagemagick poppler-utils tesseract-ocr"


def _documents(count: int, *, scans: bool) -> Iterator[Upload]:
    """Mostly scanned pages; every fifth is a PDF, and the last one carries a script."""
    for number in range(1, count):
        if scans and number % 5:
            data = scan(report_lines(number))
            yield Upload(f"report-{number:02d}.png", "image/png", data)
        else:
            yield Upload(
                f"report-{number:02d}.pdf", "application/pdf", typeset(report_lines(number))
            )
    alive = b"/Type /Catalog /OpenAction << /S /JavaScript /JS (app.alert(1)) >>"
    data = typeset(report_lines(count)).replace(b"/Type /Catalog", alive)
    yield Upload("invoice.pdf", "application/pdf", data)


@contextmanager
def _stage() -> Iterator[_Stage]:
    with tempfile.TemporaryDirectory(prefix="trunkline-") as folder, ExitStack() as stack:
        yield _Stage(Path(folder), stack)
