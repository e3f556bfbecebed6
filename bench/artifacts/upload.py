"""An upload to a folder beside a plain copy with hashing, and the memory of its process."""

from statistics import median

from bench.artifacts.processes import transfer
from bench.figures import Figure
from bench.place import Place
from bench.sizes import Sizes

__all__ = ["run"]


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goals: 0.6 of the speed of the copy, and 60 MB more than the idle process."""
    mb = sizes.artifacts.mb
    found = transfer(place, "upload", mb, sizes.artifacts.repetitions)
    copies, uploads = found["copy"], found["upload"]
    ratio = median(copy / upload for copy, upload in zip(copies, uploads, strict=True))
    return [
        Figure("artifact_mb", mb, "size of the artifact", "MB"),
        Figure("artifact_copy", mb / median(copies), "plain copy with hashing", "MB/s"),
        Figure("artifact_upload", mb / median(uploads), "upload to a folder", "MB/s"),
        Figure("artifact_upload_vs_copy", ratio, "upload over copy", goal=0.6),
        Figure(
            "artifact_upload_growth",
            found["growth_mb"],
            "memory over the idle process",
            "MB",
            goal=60,
            better="at most",
        ),
    ]
