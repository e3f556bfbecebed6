"""Sizes of the measures of artifacts."""

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "ArtifactSizes"]


@dataclass(frozen=True, slots=True)
class ArtifactSizes:
    """The sizes of one run."""

    # upload: MB of the file, and how often it is copied and uploaded.
    mb: int
    repetitions: int
    # archive: files, and KB of each.
    files: int
    file_kb: int


FULL = ArtifactSizes(mb=2048, repetitions=5, files=1000, file_kb=512)
QUICK = ArtifactSizes(mb=8, repetitions=2, files=20, file_kb=64)
