"""The tasks of the profile: its handlers as jobs of an application.

Six types on the queue ``orchestrator`` may take long; the worker's heartbeats keep them alive. The
decision on ``fase1-executor`` takes less than a second. Their timeouts are rows of the profile in
the database; install it before you start a worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from cryptography import x509

from trunkline import Cancel, Discard, SyncContext, Task, Trunkline
from trunkline_profiles.executor.handlers import anchor, artifact, decide, protect, stamp
from trunkline_profiles.executor.handlers.http import Service
from trunkline_profiles.executor.handlers.problems import BadWork
from trunkline_profiles.executor.handlers.store import Store

__all__ = ["DECISIONS", "ORCHESTRATOR", "TYPES", "Services", "build", "effect_key"]

ORCHESTRATOR: Final = "orchestrator"
DECISIONS: Final = "fase1-executor"

_DECISION: Final = "decide_next_step"

TYPES: Final = (
    "protect_document_v2",
    "document.protected",
    "run_tsa",
    "submit_anchor_polygon",
    "submit_anchor_bitcoin",
    "build_artifact",
    _DECISION,
)


@dataclass(frozen=True, slots=True)
class Services:
    """The services of the handlers."""

    # The folder of incoming documents, and the folder of evidence.
    inbox: Path
    store: Store
    authority: Service
    # The trusted certificate of the authority.
    trusted: x509.Certificate
    chain: Service
    # How many blocks must follow before an anchor counts, and how often to check.
    confirmations: dict[str, int] = field(default_factory=lambda: {"polygon": 3, "bitcoin": 2})
    look_every: float = 5.0


class _Handlers:
    """The handlers, with their services."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._store = services.store
        # Tasks that handlers enqueue.
        self.tasks: dict[str, Task[..., Any]] = {}

    def protect_document_v2(
        self, ctx: SyncContext, document: str, path: str | None = None, content: str | None = None
    ) -> dict[str, Any]:
        """Hash a document and keep a copy."""
        inbox = self._services.inbox
        with _judged(), protect.open_document(inbox, path=path, content=content) as stream:
            record = asdict(protect.protect(self._store, document, stream))
        return self._end(ctx, record, ("document.protected",), document)

    def document_protected(self, ctx: SyncContext, document: str) -> dict[str, Any]:
        """Confirm the hash of the stored copy."""
        with _judged():
            record = asdict(protect.confirm(self._store, document))
        return self._end(ctx, record, (_DECISION,), document)

    def run_tsa(self, ctx: SyncContext, document: str) -> dict[str, Any]:
        """Get a time stamp for the hash."""
        services = self._services
        with _judged():
            found = stamp.stamp(
                self._store,
                document,
                services.authority,
                services.trusted,
                effect_key(ctx.task, document),
            )
        result = {"at": found.at.isoformat(), "serial": str(found.serial)}
        return self._end(ctx, result, (_DECISION,), document)

    def submit_anchor_polygon(self, ctx: SyncContext, document: str) -> dict[str, Any]:
        """Anchor the hash in Polygon."""
        return self._submit(ctx, document, "polygon")

    def submit_anchor_bitcoin(self, ctx: SyncContext, document: str) -> dict[str, Any]:
        """Anchor the hash in Bitcoin."""
        return self._submit(ctx, document, "bitcoin")

    def build_artifact(self, document: str) -> dict[str, Any]:
        """Combine all evidence into one proof."""
        with _judged():
            return asdict(artifact.build(self._store, document))

    def decide_next_step(self, ctx: SyncContext, document: str) -> dict[str, Any]:
        """Enqueue what the document still needs."""
        with _judged():
            steps = decide.next_steps(self._store.names(document))
        return self._end(ctx, {"steps": list(steps)}, steps, document)

    def _submit(self, ctx: SyncContext, document: str, chain: str) -> dict[str, Any]:
        services = self._services
        needed = services.confirmations[chain]
        with _judged():
            found = anchor.anchor(
                self._store,
                document,
                services.chain,
                chain,
                effect_key(ctx.task, document),
                confirmations=needed,
                wait=_waiter(ctx, needed, services.look_every),
            )
        result = {"transaction": found.transaction, "height": found.height}
        return self._end(ctx, result, (_DECISION,), document)

    def _end(
        self, ctx: SyncContext, result: dict[str, Any], following: Sequence[str], document: str
    ) -> dict[str, Any]:
        """Complete the job and enqueue what follows, in one commit."""
        with ctx.transaction() as connection:
            ctx.result = result
            for name in following:
                key = effect_key(name, document)
                calls = self.tasks[name].sync.options(connection=connection, unique_key=key)
                if name != _DECISION:
                    # Once per document: a decision may have read the evidence just before the
                    # previous step ended, when its key was no longer held.
                    calls = calls.options(idempotency_key=f"executor:{key}")
                calls.enqueue(document=document)
        return result


def build(app: Trunkline, services: Services) -> dict[str, Task[..., Any]]:
    """Declare the seven tasks on an application; return them by name."""
    handlers = _Handlers(services)
    for handler in (
        handlers.protect_document_v2,
        handlers.run_tsa,
        handlers.submit_anchor_polygon,
        handlers.submit_anchor_bitcoin,
        handlers.build_artifact,
    ):
        app.task(queue=ORCHESTRATOR, profile="executor")(handler)
    app.task(name="document.protected", queue=ORCHESTRATOR, profile="executor")(
        handlers.document_protected
    )
    # A decision requested while another one runs is a separate job.
    app.task(queue=DECISIONS, profile="executor", unique_until="claim")(handlers.decide_next_step)
    handlers.tasks = {name: app.tasks[name] for name in TYPES}
    return handlers.tasks


def effect_key(task: str, document: str) -> str:
    """The key of a job and of its outside effect: one per document, for all attempts and jobs."""
    return f"{task}:{document}"


def _waiter(ctx: SyncContext, needed: int, seconds: float) -> Callable[[int], None]:
    def wait(so_far: int) -> None:
        # Raises if the job was lost or is to be cancelled; another attempt may run it by now.
        ctx.progress(100 * so_far // needed, f"{so_far} of {needed} confirmations")
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if ctx.cancelled:
                raise Cancel("stopped while waiting for confirmations")
            time.sleep(min(left, 0.25))

    return wait


@contextmanager
def _judged() -> Iterator[None]:
    """A permanent problem makes the job dead at once; others are retried."""
    try:
        yield
    except BadWork as error:
        raise Discard(str(error)) from error
