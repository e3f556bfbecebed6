"""The life of exports over HTTP: one, a batch, a cancellation, downloads, and the history.

It runs on a separate PostgreSQL in a temporary folder, with the API on a free port and a worker
process that would render six documents at once if the limit did not stop it at three.
"""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from trunkline.errors import ProfileError, ProfileNeedsPackages
from trunkline.operate import SyncOperator
from trunkline.profiles import session, temporary_site
from trunkline_profiles.exports import PROFILE

__all__ = ["DOCUMENTS", "Account", "Stage", "lines", "open_stage", "run"]

DOCUMENTS: Final = 6
_BASE: Final = "/api/v1/export"
_FINAL: Final = frozenset({"completed", "failed", "cancelled"})
_DATA: Final = {
    "headline": "Engineer for queues, pages and other things that arrive one after the other",
    "contact": ["ann@example.com", "+1 555 0100", "Springfield"],
    "summary": "Twelve years of work on systems that people notice only when they stop.",
    "sections": [
        {
            "title": title,
            "entries": [
                {
                    "title": f"{title}, part {part}",
                    "place": "Example Ltd.",
                    "period": f"{2010 + 2 * part} to {2012 + 2 * part}",
                    "text": ["Built it, ran it, and handed it over in good order. " * 6],
                }
                for part in range(1, 5)
            ],
        }
        for title in ("Work", "Education", "Projects")
    ],
}

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Account:
    """What was asked for, and what came of it."""

    exports: int
    batches: int
    completed: int
    cancelled: int
    # Files loaded by their links, the downloads that the history counted, and files of the ZIP.
    downloaded: int
    counted: int
    zip_entries: int
    # From when each export began and ended.
    most_at_once: int
    pages: int
    rows: int
    files: int
    # Files whose size is that of their row.
    equal: int
    # Percentages that the stream of the first export showed, and whether one was lower than before.
    seen: tuple[int, ...]
    falls: int
    renderer: str
    seconds: float

    @property
    def balanced(self) -> bool:
        """Whether every export is accounted for, and the store has what the rows say."""
        return (
            self.exports == self.completed + self.cancelled
            and self.cancelled == 1
            and self.rows == self.files == self.equal == self.completed
            and self.downloaded == self.counted >= 1
            and self.zip_entries >= 1
            and 1 <= self.most_at_once <= 3
            and self.pages >= self.completed
            and self.falls == 0
        )


class Stage:
    """The database, the API, the store and the worker of one demonstration."""

    def __init__(self, folder: Path, stack: ExitStack, documents: int) -> None:
        import httpx2  # noqa: PLC0415 - with the extra

        self.folder = folder
        self.root = folder / "store"
        self.root.mkdir()
        self.dsn, api = stack.enter_context(temporary_site(PROFILE))
        self.people = self.ask("people", data=Jsonb(_DATA), documents=documents)
        with SyncOperator(self.dsn) as operator:
            self.keys = {
                person: operator.keys.create(f"of {name}", "producer", tenant=str(person)).key
                for person, name, _ in self.people
            }
        self.address = stack.enter_context(_serving(api, self.root))
        self.client = stack.enter_context(httpx2.Client(base_url=self.address, timeout=60))
        self.worker: subprocess.Popen[bytes] | None = None
        stack.callback(self.stop)

    @property
    def page(self) -> str:
        """The page of the first person, with their key in the part that browsers do not send."""
        return f"{self.address}/exports/#token={self.keys[self.people[0][0]]}"

    def ask(self, question: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Ask a question of the demonstration."""
        with session(self.dsn, PROFILE) as opened:
            return opened.ask(f"demo_{question}", **parameters)

    def send(self, method: str, path: str, person: UUID | None = None, **more: Any) -> Any:
        """Send a request of a person, by default of the first one; return the response."""
        key = self.keys[person or self.people[0][0]]
        headers = {"Authorization": f"Bearer {key}"}
        response = self.client.request(method, _BASE + path, headers=headers, **more)
        if response.status_code >= 400:
            raise ProfileError(
                f"{method} {path} was answered {response.status_code}", hint=response.text
            )
        return response

    def data(self, method: str, path: str, person: UUID | None = None, **more: Any) -> Any:
        """Send a request; return what is under `data`."""
        return self.send(method, path, person, **more).json()["data"]

    def start_worker(self) -> None:
        """Start a worker that takes as many exports as the database gives it."""
        environment = os.environ | {
            "TRUNKLINE_DSN": self.dsn,
            "TRUNKLINE_STORE": self.root.as_uri(),
            "WORKER_CONCURRENCY": "6",
        }
        with (self.folder / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                [sys.executable, "-m", "trunkline_profiles.exports"],
                env=environment,
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        """Stop the worker."""
        if self.worker is None:
            return
        self.worker.terminate()
        try:
            self.worker.wait(30)
        except subprocess.TimeoutExpired:
            self.worker.kill()
            self.worker.wait()
        self.worker = None

    def log(self) -> str:
        """The end of the worker's log."""
        path = self.folder / "worker.log"
        return path.read_text(errors="replace")[-2000:] if path.exists() else ""


class _Play:
    """The steps of the demonstration."""

    def __init__(self, stage: Stage, deadline: float, say: Say) -> None:
        self._stage = stage
        self._tell = say
        self._started = time.monotonic()
        self._ends = self._started + deadline
        self._exports = 0
        self._downloaded = 0
        self._seen: list[int] = []

    def run(self) -> Account:
        stage = self._stage
        (_, _, documents), (other, _, (lonely,)) = stage.people
        # Before the worker starts, so that all of them wait for the same three slots.
        single = self._create(documents[0])
        batch = stage.data("POST", "/batch", json={"documentIds": [str(d) for d in documents]})
        self._exports += len(batch["jobs"])
        foreign = self._create(lonely, other)
        unwanted = self._create(documents[0], options={"quality": "draft"})
        cancelled = stage.data("DELETE", f"/job/{unwanted}")
        self._say(f"{self._exports} exports, one of them {cancelled['status']}")
        stage.start_worker()
        self._follow(single)
        self._wait(f"/batch/{batch['batchId']}", lambda one: one["progress"] == 100)
        self._wait(f"/job/{foreign}", lambda one: one["status"] in _FINAL, other)
        content = stage.send("GET", f"/batch/{batch['batchId']}/download").content
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [name for name in archive.namelist() if name.endswith(".pdf")]
            broken = archive.testzip()
        self._say(f"a ZIP of {len(entries)} files, {len(content)} bytes")
        for row in stage.data("GET", "/history"):
            self._download(row["id"])
        stage.stop()
        return self._account(0 if broken else len(entries))

    def _create(self, document: UUID, person: UUID | None = None, **more: Any) -> str:
        body = {"documentId": str(document), **more}
        found: str = self._stage.data("POST", "/pdf", person, json=body)["jobId"]
        self._exports += 1
        return found

    def _follow(self, job: str) -> None:
        """Follow an export by its stream."""
        stage = self._stage
        headers = {"Authorization": f"Bearer {stage.keys[stage.people[0][0]]}"}
        while True:
            with stage.client.stream("GET", f"{_BASE}/job/{job}/stream", headers=headers) as answer:
                name = ""
                for line in answer.iter_lines():
                    self._check()
                    field, _, value = line.partition(": ")
                    if field == "event":
                        name = value
                    elif field == "data" and name == "progress":
                        self._seen.append(json.loads(value)["progress"])
                        self._say(f"the first export: {self._seen[-1]} %")
                    elif field == "data" and name in _FINAL:
                        self._seen.append(100 if name == "completed" else -1)
                        self._say(f"the first export is {name}")
                        return

    def _wait(self, path: str, done: Callable[[Any], bool], person: UUID | None = None) -> None:
        while not done(self._stage.data("GET", path, person)):
            self._check()
            time.sleep(0.1)

    def _download(self, history: str) -> None:
        stage = self._stage
        link = stage.send("GET", f"/download/{history}").headers["location"]
        content = stage.client.get(link).content
        self._downloaded += content.startswith(b"%PDF")

    def _say(self, text: str) -> None:
        self._tell(f"{time.monotonic() - self._started:5.1f} s  {text}")

    def _check(self) -> None:
        worker = self._stage.worker
        if time.monotonic() > self._ends or (worker is not None and worker.poll() is not None):
            raise ProfileError("The demonstration did not come to its end", hint=self._stage.log())

    def _account(self, entries: int) -> Account:
        stage = self._stage
        ((completed, cancelled, jobs, most, rows, counted, pages),) = stage.ask("account")
        sizes = dict(stage.ask("files"))
        found = {
            path.relative_to(stage.root).as_posix(): path.stat().st_size
            for path in stage.root.rglob("*/*")
            # Names that begin with a dot are drafts and secrets of the store.
            if path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(stage.root).parts)
        }
        return Account(
            exports=jobs if jobs == self._exports else -1,
            batches=1,
            completed=completed,
            cancelled=cancelled,
            downloaded=self._downloaded,
            counted=int(counted),
            zip_entries=entries,
            most_at_once=int(most),
            pages=int(pages),
            rows=rows,
            files=len(found),
            equal=sum(found.get(path) == size for path, size in sizes.items()),
            seen=tuple(self._seen),
            falls=sum(b < a for a, b in zip(self._seen, self._seen[1:], strict=False)),
            renderer=_renderer_name(),
            seconds=round(time.monotonic() - self._started, 1),
        )


def run(
    documents: int = DOCUMENTS, *, deadline: float = 240.0, say: Say = lambda _: None
) -> Account:
    """Export documents over HTTP; in a terminal, the page stays open until Ctrl-C."""
    if not 1 <= documents <= 10:
        raise ProfileError(
            f"A batch has up to 10 documents, not {documents}", hint="Pass a number from 1 to 10."
        )
    _require_packages()
    say("Starting a PostgreSQL, the API and a worker in a temporary folder ...")
    with tempfile.TemporaryDirectory(prefix="trunkline-") as folder, ExitStack() as stack:
        stage = open_stage(Path(folder), stack, documents)
        say(f"The page: {stage.page}")
        account = _Play(stage, deadline, say).run()
        if say.__name__ != "<lambda>" and sys.stdin.isatty() and sys.stdout.isatty():
            _stay(stage, account, say)
        return account


def lines(account: Account) -> Iterator[str]:
    """The account as text."""
    yield ""
    facts = {
        "exports": f"{account.exports}: {account.completed} complete,"
        f" {account.cancelled} cancelled",
        "at once": f"{account.most_at_once} at most",
        "pages": f"{account.pages}, by {account.renderer}",
        "bar": ", ".join(map(str, account.seen)),
        "files": f"{account.files} in the store for {account.rows} rows, {account.equal} equal",
        "downloads": f"{account.downloaded}, {account.counted} counted,"
        f" {account.zip_entries} in a ZIP",
        "seconds": f"{account.seconds}",
        "balanced": "yes" if account.balanced else "NO",
    }
    for fact, value in facts.items():
        yield f"{fact:10}  {value}"


def open_stage(folder: Path, stack: ExitStack, documents: int = DOCUMENTS) -> Stage:
    """Start the database and the API; the worker is still to be started."""
    return Stage(folder, stack, documents)


@contextmanager
def _serving(dsn: str, root: Path) -> Iterator[str]:
    """Run the API in a thread; yields its address."""
    import uvicorn  # noqa: PLC0415 - with the extra

    from trunkline import Trunkline  # noqa: PLC0415
    from trunkline.http import ApiSettings, create_app  # noqa: PLC0415
    from trunkline_profiles.exports.http import ROUTES  # noqa: PLC0415

    store = Trunkline(store=root).open_store()
    app = create_app(dsn, ApiSettings(), store=store, routes=[ROUTES])
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def _stay(stage: Stage, account: Account, say: Say) -> None:
    """Keep the page open for a person."""
    for line in lines(account):
        say(line)
    stage.start_worker()
    say(f"Open {stage.page} and export. Ctrl-C ends it.")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        say("Ended.")


def _renderer_name() -> str:
    from trunkline_profiles.exports.handlers.renderers import renderer  # noqa: PLC0415

    return renderer(os.environ).name


def _require_packages() -> None:
    for module in ("fpdf", "pypdf", "httpx2", "starlette", "uvicorn"):
        try:
            __import__(module)
        except ImportError as error:
            raise ProfileNeedsPackages(
                f"The demonstration cannot run: {module} is not installed",
                hint="Install the packages with: pip install 'trunkline-profiles[exports]'",
            ) from error
