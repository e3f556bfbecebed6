"""The profile end to end: documents, two workers, one of them killed, and the account.

It runs on a separate PostgreSQL in a temporary folder, with TTLs of a few seconds.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from trunkline.errors import ProfileError, ProfileNeedsPackages
from trunkline.profiles import session, temporary_database
from trunkline_profiles.executor import PROFILE
from trunkline_profiles.executor.handlers import artifact
from trunkline_profiles.executor.handlers.evidence import BUNDLE, CHAINS
from trunkline_profiles.executor.handlers.store import Store
from trunkline_profiles.executor.stubs.ledger import Ledger

__all__ = ["DOCUMENTS", "Account", "lines", "run"]

DOCUMENTS: Final = 5

# Seconds. Short, so that a killed worker's jobs are back soon.
_TTL: Final = 3
_WORKERS: Final = 2
_APP: Final = "trunkline_profiles.executor.app:app"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Account:
    """The documents and their outcome."""

    documents: int
    proofs: int
    jobs: int
    succeeded: int
    dead: int
    reclaimed: int
    workers_killed: int
    effects: int
    duplicates: int
    refused: int
    lost: int
    seconds: float

    @property
    def balanced(self) -> bool:
        """Whether every document has its proof and no effect happened twice."""
        return (
            self.proofs == self.documents
            and self.jobs == self.succeeded
            and self.reclaimed > 0
            and self.workers_killed == 1
            and not (self.lost or self.dead or self.duplicates)
        )


class _Stage:
    """The database, the stubs and the folders of one demonstration."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        try:
            from trunkline_profiles.executor.stubs.authority import StubAuthority  # noqa: PLC0415
            from trunkline_profiles.executor.stubs.chain import StubChain  # noqa: PLC0415
        except ModuleNotFoundError as missing:
            raise ProfileNeedsPackages(
                f"The demonstration needs {missing.name}",
                hint="Install them with: pip install 'trunkline-profiles[executor]'",
            ) from missing

        phases = [phase.name for phase in PROFILE.phases]
        self.dsn = stack.enter_context(temporary_database(PROFILE, phases))
        self.authority = stack.enter_context(StubAuthority())
        self.chain = stack.enter_context(StubChain(block_seconds=0.5))
        self.store = Store(folder / "store")
        self.folder = folder
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        stack.callback(self.stop)
        self.ask("shorten", seconds=_TTL)

    def ask(self, question: str, **parameters: Any) -> list[tuple[Any, ...]]:
        with session(self.dsn, PROFILE) as opened:
            return opened.ask(question, **parameters)

    def start_worker(self) -> None:
        from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

        certificate = self.folder / "authority.pem"
        certificate.write_bytes(self.authority.certificate.public_bytes(Encoding.PEM))
        (self.folder / "inbox").mkdir(exist_ok=True)
        environment = os.environ | {
            "TRUNKLINE_DSN": self.dsn,
            "TRUNKLINE_EXECUTOR_INBOX": str(self.folder / "inbox"),
            "TRUNKLINE_EXECUTOR_STORE": str(self.store.root),
            "TRUNKLINE_EXECUTOR_TSA": self.authority.url,
            "TRUNKLINE_EXECUTOR_TSA_CERTIFICATE": str(certificate),
            "TRUNKLINE_EXECUTOR_CHAIN": self.chain.url,
            "TRUNKLINE_EXECUTOR_LOOK_EVERY": "0.3",
        }
        program = (
            "import sys; from trunkline.worker import WorkerOptions, run_worker;"
            f" sys.exit(run_worker(WorkerOptions(app_path={_APP!r}, log_level='warning')))"
        )
        with (self.folder / "workers.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", program], env=environment, stdout=log, stderr=log
            )
        self.processes[process.pid] = process

    def kill_a_busy_worker(self) -> str | None:
        """Kill a process that waits for an anchor; None if there is none yet."""
        found = self.ask("busy_worker", pids=list(self.processes))
        if not found:
            return None
        pid, worker = found[0]
        self.processes[pid].send_signal(signal.SIGKILL)
        self.processes.pop(pid).wait()
        return str(worker)

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

    def proofs(self, documents: list[str]) -> int:
        found = [self.store.get(document, BUNDLE) for document in documents]
        return sum(1 for data in found if data and artifact.contents(data))


def run(
    documents: int = DOCUMENTS, *, deadline: float = 90.0, say: Say = lambda _: None
) -> Account:
    """Protect documents and kill a worker on the way."""
    with _stage() as stage:
        started = time.monotonic()
        names = [f"document-{number}" for number in range(1, documents + 1)]
        for name in names:
            content = base64.b64encode(f"This is {name}.\n".encode() * 100).decode()
            payload = json.dumps({"document": name, "content": content})
            stage.ask("enqueue", type="protect_document_v2", payload=payload, key=name)
        say(f"{documents} documents wait; starting {_WORKERS} workers")
        for _ in range(_WORKERS):
            stage.start_worker()
        killed = 0
        reclaimed = 0
        while stage.proofs(names) < documents or _open_jobs(stage):
            if time.monotonic() - started > deadline:
                log = (stage.folder / "workers.log").read_text(errors="replace")[-2000:]
                raise ProfileError(f"Not done within {deadline:.0f} s", hint=log)
            if not killed and (worker := stage.kill_a_busy_worker()):
                killed = 1
                say(f"killed {worker} while it waited for an anchor; starting another one")
                stage.start_worker()
            # Every half second instead of every 15, to match the short TTLs.
            taken = sum(row[0] for row in stage.ask("wake_now"))
            if taken:
                reclaimed += taken
                say(f"{taken} of its jobs were silent for {_TTL} s and are back in the queue")
            time.sleep(0.5)
        stage.stop()
        return _account(stage, names, killed, time.monotonic() - started)


def lines(account: Account) -> Iterator[str]:
    """The account as text."""
    for fact, value in (asdict(account) | {"balanced": account.balanced}).items():
        yield f"{fact.replace('_', ' '):15}  {value}"


@contextmanager
def _stage() -> Iterator[_Stage]:
    with tempfile.TemporaryDirectory(prefix="trunkline-") as folder, ExitStack() as stack:
        yield _Stage(Path(folder), stack)


def _open_jobs(stage: _Stage) -> int:
    return sum(int(n) for _, status, n in stage.ask("statuses") if status in {"queued", "running"})


def _account(stage: _Stage, names: list[str], killed: int, seconds: float) -> Account:
    statuses = stage.ask("statuses")
    by_type = {kind: 0 for kind, _, _ in statuses}
    for kind, _, number in statuses:
        by_type[kind] += int(number)
    ledgers: list[Ledger[Any]] = [stage.authority.ledger]
    ledgers += [stage.chain.ledger(chain) for chain in CHAINS]
    effects = sum(len(ledger.keys()) for ledger in ledgers)
    reclaims = stage.ask("reclaims")
    proofs = stage.proofs(names)
    return Account(
        documents=len(names),
        proofs=proofs,
        jobs=sum(by_type.values()),
        succeeded=sum(int(n) for _, status, n in statuses if status == "succeeded"),
        dead=sum(int(n) for _, status, n in statuses if status == "dead"),
        reclaimed=int(reclaims[0][0]),
        workers_killed=killed,
        effects=effects,
        # Exactly one stamp and two anchors for each document.
        duplicates=max(0, effects - len(names) * len(ledgers)),
        refused=sum(len(ledger.refused) for ledger in ledgers),
        lost=len(names) - proofs,
        seconds=round(seconds, 1),
    )
