"""A ZIP archive of many artifacts, and the memory of its process."""

from bench.artifacts.processes import transfer
from bench.figures import Figure
from bench.place import Place
from bench.sizes import Sizes

__all__ = ["run"]


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal: 60 MB more than the idle process."""
    files, file_kb = sizes.artifacts.files, sizes.artifacts.file_kb
    found = transfer(place, "archive", files, file_kb)
    return [
        Figure("archive_files", files, f"artifacts of {file_kb} KB", "files"),
        Figure(
            "archive_speed",
            files * file_kb / 1024 / found["seconds"],
            "artifacts packed, half of them compressed",
            "MB/s",
        ),
        Figure(
            "archive_growth",
            found["growth_mb"],
            "memory over the idle process",
            "MB",
            goal=60,
            better="at most",
        ),
    ]
