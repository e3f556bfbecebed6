"""What the measures of steps share: the place, and whether to measure a rival."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.place import Place
from bench.rivals import dbos

__all__ = ["Scene", "open_scene", "prepare"]


@dataclass(frozen=True, slots=True)
class Scene:
    """A place, and whether rivals are measured too."""

    place: Place
    rivals: bool


def prepare(rivals: bool) -> None:
    """Install the rival."""
    if rivals:
        dbos.PRODUCT.prepare()


@contextmanager
def open_scene(place: Place, rivals: bool) -> Iterator[tuple[Scene, dict[str, str]]]:
    """Yield the scene and the versions of the rival."""
    yield Scene(place, rivals), dict(dbos.PRODUCT.versions()) if rivals else {}
