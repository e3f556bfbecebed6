"""The setting of whole processes: a place, the contenders in it, and a folder for slates."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.apps.slate import Slate
from bench.place import Place
from bench.rivals.pgqueuer import PLAIN, TUNED, open_pgqueuer, versions
from bench.rivals.product import PostgresContender
from bench.rivals.trunkline import open_trunkline

__all__ = ["Stage", "facts", "open_stage"]


@dataclass(frozen=True, slots=True)
class Stage:
    """The argument of every measure of this suite."""

    ours: PostgresContender
    # Empty without rivals; otherwise, the rival that the goals refer to comes first.
    rivals: list[PostgresContender]
    folder: Path

    @property
    def contenders(self) -> list[PostgresContender]:
        """All contenders, ours first."""
        return [self.ours, *self.rivals]

    def slate(self, jobs: int, name: str = "slate") -> tuple[Path, Slate]:
        """An empty slate, and its path."""
        path = self.folder / name
        return path, Slate.create(path, jobs)


@contextmanager
def open_stage(place: Place, *, rivals: bool) -> Iterator[Stage]:
    """Yield the stage; the environments of rivals must exist."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-bench-")))
        us = stack.enter_context(open_trunkline(place))
        them: list[PostgresContender] = []
        if rivals:
            them = stack.enter_context(open_pgqueuer(place, [PLAIN, TUNED]))
        yield Stage(us, them, folder)


def facts(stage: Stage) -> dict[str, str]:
    """Facts, other than the server, that the figures depend on."""
    return versions() if stage.rivals else {}
