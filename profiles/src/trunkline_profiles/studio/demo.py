"""One order from start to end: a bar, 48 tasks, four pools of workers, and files that open.

It runs on a separate PostgreSQL in a temporary folder, with leases of a few seconds. A worker is
killed while it holds a recording whose file is uploaded, and not published. The text model is a
local stub that counts every call, so the account at the end is the model's, not ours.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from trunkline.errors import ProfileError, ProfileNeedsPackages
from trunkline.profiles import session, temporary_database
from trunkline_profiles.studio import PROFILE
from trunkline_profiles.studio.account import Account, lines
from trunkline_profiles.studio.bar import Bar
from trunkline_profiles.studio.handlers.adapters import adapters
from trunkline_profiles.studio.handlers.chapter import decode
from trunkline_profiles.studio.handlers.mp3 import measure
from trunkline_profiles.studio.handlers.problems import StudioProblem

__all__ = [
    "DOCUMENTS",
    "KEEPS_FILES",
    "PARAMS",
    "POOLS",
    "Account",
    "Stage",
    "lines",
    "open_stage",
    "run",
]

DOCUMENTS: Final = 16
KEEPS_FILES: Final = True

POOLS: Final = ("text", "pdf", "audio", "final")
_LIMIT: Final[dict[str, Any]] = {
    "requests_per_minute": 600,
    "tokens_per_minute": 1_000_000,
    "concurrency": 4,
}
_LATENCY: Final = (0.05, 0.3)
PARAMS: Final = {
    "person1": {"name": "Ann", "born": "1984-05-17T08:30:00+02:00"},
    "person2": {"name": "Bob", "born": "1981-11-02"},
    "systems": ["vedic", "western", "human_design"],
}
# Seconds for which completions are held, to find a worker between upload and completion, and
# seconds after the upload until the completion waits.
_HOLD: Final = 5.0
_SETTLE: Final = 0.3
_BLOCKED: Final = b"""
select count(*) from pg_stat_activity as a where %s = any (pg_blocking_pids(a.pid))
"""
# The session of a process that was killed would otherwise carry out what it waits to do. Other
# workers repeat a completion whose connection broke.
_END_BLOCKED: Final = b"""
select count(pg_terminate_backend(a.pid, 5000))
from pg_stat_activity as a where %s = any (pg_blocking_pids(a.pid))
"""
# The tasks that end are written to what this view reads, so completions wait, and uploads pass.
_HOLD_ENDS: Final = b"lock table trunkline.throughput in share mode"
_RUNS: Final = b"""
select exists (
  select from trunkline.jobs as j where j.job_id = %s and j.attempt = %s and j.state = 'running'
)
"""
# Before that, its size and hash are not recorded, and the file of a dead attempt stays for an hour.
_STORED: Final = b"""
select exists (
  select from trunkline.jobs as j
  where j.job_id = %s and j.attempt = %s and j.state = 'running' and j.phase = 'stored'
)
"""
_NAMES: Final = b"select a.storage_path, a.name from studio.job_artifacts as a"
_SLOW: Final = "trunkline_profiles.studio.stubs.speech:SlowSpeaker"

Say = Callable[[str], None]


class _Recording(NamedTuple):
    """A recording that a worker runs."""

    task: UUID
    attempt: int
    worker: str
    pid: int


class Stage:
    """The database, the model, the store and the workers of one demonstration."""

    def __init__(self, folder: Path, stack: ExitStack, documents: int) -> None:
        from trunkline_profiles.studio.stubs.model import Model, TextModel  # noqa: PLC0415

        self.folder = folder
        self.store = folder / "store"
        self.dsn = stack.enter_context(temporary_database(PROFILE))
        self.model = stack.enter_context(TextModel(Model(latency=_LATENCY, **_LIMIT)))
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        stack.callback(self.stop)
        self.ask("shorten", documents=documents, limit=json.dumps(_LIMIT))
        self.ask("register")

    def ask(self, question: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Ask a question of the demonstration."""
        with session(self.dsn, PROFILE) as opened:
            return opened.ask(f"demo_{question}", **parameters)

    def connect(self) -> psycopg.Connection[Any]:
        """A connection as the installer."""
        return psycopg.connect(self.dsn)

    def start_worker(self, pool: str, **more: str) -> None:
        """Start a process for one kind of tasks."""
        environment = (
            os.environ
            | more
            | {
                "TRUNKLINE_DSN": self.dsn,
                "TRUNKLINE_STORE": self.store.as_uri(),
                "TRUNKLINE_STUDIO_MODEL_URL": f"{self.model.url}/v1",
            }
        )
        with (self.folder / "workers.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "trunkline_profiles.studio", pool],
                env=environment,
                stdout=log,
                stderr=log,
            )
        self.processes[process.pid] = process

    def kill_a_recorder(self) -> tuple[str, str] | None:
        """Kill a worker that has uploaded a file and not published it; return both names."""
        found = self.ask("recording", pids=list(self.processes))
        if not found:
            return None
        recording = _Recording(*found[0])
        with self.connect() as connection:
            connection.execute(_HOLD_ENDS)
            uploaded = self._uploaded(connection, recording)
            if uploaded is not None:
                self.processes[recording.pid].send_signal(signal.SIGKILL)
                self.processes.pop(recording.pid).wait()
                connection.execute(_END_BLOCKED, (connection.info.backend_pid,))
            connection.rollback()
        return None if uploaded is None else (recording.worker, uploaded)

    def paths(self) -> dict[str, Path]:
        """The files in the store by their paths, without the mark that the store has at its top."""
        found = {path.relative_to(self.store).as_posix(): path for path in self.store.rglob("*/*")}
        return {
            name: path
            for name, path in found.items()
            # Names that begin with a dot are drafts and secrets of the store.
            if path.is_file() and not any(part.startswith(".") for part in Path(name).parts)
        }

    def copy_files(self, folder: Path) -> None:
        """Copy the files of the order, under their names."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = self.paths()
        with self.connect() as connection:
            for path, name in connection.execute(_NAMES):
                shutil.copyfile(paths[path], folder / name)

    def stop(self) -> None:
        """Stop all workers."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = {}

    def _uploaded(self, connection: psycopg.Connection[Any], one: _Recording) -> str | None:
        """Wait until the recording has its file and its completion waits; return the file."""
        if connection.execute(_RUNS, (one.task, one.attempt)).fetchone() != (True,):
            return None
        end = time.monotonic() + _HOLD
        name = f"{one.task}-{one.attempt}-"
        while time.monotonic() < end:
            files = [path for path in self.paths() if Path(path).name.startswith(name)]
            stored = connection.execute(_STORED, (one.task, one.attempt)).fetchone()
            if files and stored == (True,):
                # The task is about to be completed.
                time.sleep(_SETTLE)
                blocked = connection.execute(_BLOCKED, (connection.info.backend_pid,)).fetchone()
                if blocked != (0,):
                    return files[0]
            time.sleep(0.01)
        return None


class _Play:
    """The steps of the demonstration."""

    def __init__(self, stage: Stage, documents: int, deadline: float, say: Say) -> None:
        self._stage = stage
        self._documents = documents
        self._deadline = deadline
        self._tell = say
        self._started = time.monotonic()
        self._bar = Bar()
        self._killed: tuple[str, str] | None = None

    def run(self) -> Account:
        stage = self._stage
        for pool in POOLS:
            # Slow enough to meet one of its recordings between upload and completion.
            stage.start_worker(pool, TRUNKLINE_STUDIO_SPEECH=_SLOW)
        ((job,),) = stage.ask("start", params=Jsonb(PARAMS), user=uuid4())
        self._say(f"one order, {3 * self._documents} tasks, a worker for each kind")
        self._until(lambda: self._show(job) in {"complete", "failed", "cancelled"})
        # A worker removes what was uploaded and never published.
        self._until(lambda: stage.ask("tasks", job=job)[0][3] == 0)
        stage.stop()
        return self._account(job)

    def _say(self, text: str) -> None:
        self._tell(f"{time.monotonic() - self._started:5.1f} s  {text}")

    def _until(self, done: Callable[[], bool]) -> None:
        stage = self._stage
        while not done():
            if time.monotonic() - self._started > self._deadline:
                log = (stage.folder / "workers.log").read_text(errors="replace")[-2000:]
                raise ProfileError(f"Not done within {self._deadline:.0f} s", hint=log)
            if self._killed is None and (found := stage.kill_a_recorder()):
                self._killed = found
                self._say(f"killed {found[0]} between upload and completion")
                stage.start_worker("audio", TRUNKLINE_STUDIO_SPEECH="espeak")
            # More often than the duty, to match the short leases.
            stage.ask("reclaim")
            time.sleep(0.1)

    def _show(self, job: UUID) -> str:
        ((status, progress),) = self._stage.ask("progress", job=job)
        if line := self._bar.see(progress):
            self._say(line)
        return str(status)

    def _account(self, job: UUID) -> Account:
        stage = self._stage
        ((tasks, completed, reclaimed, _),) = stage.ask("tasks", job=job)
        ((status, progress),) = stage.ask("progress", job=job)
        rows = {path: rest for path, *rest in stage.ask("files", job=job)}
        files = stage.paths()
        # Of attempts that were lost in the middle of an upload: they are removed after an hour.
        queued = {path for (path,) in stage.ask("removals")}
        equal = opened = 0
        for path, (kind, sha256, size, duration) in rows.items():
            if path in files:
                content = files[path].read_bytes()
                digest = hashlib.sha256(content).hexdigest()
                equal += (digest, len(content)) == (sha256, size)
                opened += _opens(path, kind, content, duration)
        worker, unpublished = self._killed or ("", "")
        return Account(
            documents=self._documents,
            tasks=tasks,
            completed=completed,
            percent=progress["percent"],
            status=status,
            artifacts=len(rows),
            files=len(files),
            equal=equal,
            opened=opened,
            orphans=len(files.keys() - rows.keys() - queued),
            missing=len(rows.keys() - files.keys()),
            killed=int(bool(worker)),
            unpublished=unpublished,
            unpublished_removed=bool(worker) and unpublished not in files,
            reclaimed=reclaimed,
            calls=sum(stage.model.keys.values()),
            paid=stage.model.paid,
            falls=self._bar.falls,
            seconds=round(time.monotonic() - self._started, 1),
        )


def run(
    documents: int = DOCUMENTS,
    *,
    deadline: float = 600.0,
    say: Say = lambda _: None,
    keep: Path | None = None,
) -> Account:
    """Carry out one order and kill a worker on the way; copy its files to a folder."""
    if not 1 <= documents <= DOCUMENTS:
        raise ProfileError(
            f"An order has up to {DOCUMENTS} documents, not {documents}",
            hint=f"Pass 1 to {DOCUMENTS}.",
        )
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise ProfileError(
            f"Folder {keep} is not empty", hint="Name a folder that does not exist yet."
        )
    missing = adapters({"TRUNKLINE_STUDIO_MODEL_URL": "http://stub"}).missing
    if missing:
        raise ProfileNeedsPackages(
            f"The demonstration cannot run: {'; '.join(missing.values())}",
            hint="Install the packages with: pip install 'trunkline-profiles[studio]'",
        )
    say("Starting PostgreSQL, a stub of the text model and four workers ...")
    with _stage(documents) as stage:
        account = _Play(stage, documents, deadline, say).run()
        if keep is not None:
            stage.copy_files(keep)
        return account


def _opens(path: str, kind: str, content: bytes, duration: float | None) -> bool:
    try:
        if kind == "audio_mp3":
            return abs(measure(content).duration - (duration or 0)) < 0.01
        if kind == "pdf":
            return content.startswith(b"%PDF-1.") and content.rstrip().endswith(b"%%EOF")
        if path.endswith("_metadata.json") or "full_nuclear" in path:
            return isinstance(json.loads(content), dict)
        return bool(decode(content).paragraphs)
    except (StudioProblem, ValueError):
        return False


def open_stage(folder: Path, stack: ExitStack, documents: int = DOCUMENTS) -> Stage:
    """Start the database and the model; the workers are still to be started."""
    return Stage(folder, stack, documents)


@contextmanager
def _stage(documents: int) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="trunkline-") as folder, ExitStack() as stack:
        yield open_stage(Path(folder), stack, documents)
