"""Where whole processes are measured: a place, the contenders in it, and a folder for slates."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.apps.slate import Slate
from bench.place import Place
from bench.worker.contender import PGQUEUER, Contender, Settings, ours, pgqueuer

__all__ = ["Stage", "facts", "open_stage"]

# Makes no difference to handlers that do nothing: from 10 to 500 the drain is the same.
CONCURRENCY = 100

# First the settings that baseline figures are from, then the quickest that were found: its guide
# asks for one connection per worker and larger batches for short jobs, and elsewhere for a pool.
PLAIN = Settings("pgqueuer", "PgQueuer, batch 100", 100, "connection")
TUNED = Settings("pgqueuer_tuned", "PgQueuer, pool, batch 500", 500, "pool")


@dataclass(frozen=True, slots=True)
class Stage:
    """What a measure of this suite gets."""

    ours: Contender
    # Empty if it runs without rivals; otherwise the one that goals are about comes first.
    rivals: list[Contender]
    folder: Path

    @property
    def contenders(self) -> list[Contender]:
        """Everybody, ours first."""
        return [self.ours, *self.rivals]

    def slate(self, jobs: int, name: str = "slate") -> tuple[Path, Slate]:
        """A clean slate, and where it is."""
        path = self.folder / name
        # Unlinked first, so that whoever still has the old one cannot write on this.
        path.unlink(missing_ok=True)
        return path, Slate.create(path, jobs)


@contextmanager
def open_stage(place: Place, *, rivals: bool) -> Iterator[Stage]:
    """Set the stage; the environment of a rival must be there."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-bench-")))
        us = stack.enter_context(ours(place, CONCURRENCY))
        them: list[Contender] = []
        if rivals:
            them = stack.enter_context(pgqueuer(place, [PLAIN, TUNED]))
        yield Stage(us, them, folder)


def facts(stage: Stage) -> dict[str, str]:
    """What the figures depend on beside the server."""
    return PGQUEUER.versions("pgqueuer", "asyncpg", "uvloop") if stage.rivals else {}
