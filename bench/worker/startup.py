"""How long ``trunkline --help`` takes, which is the minimum for every command."""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.figures import Figure
from bench.sizes import Sizes
from bench.worker.stage import Stage

__all__ = ["run"]


def run(stage: Stage, sizes: Sizes) -> list[Figure]:  # noqa: ARG001 - as every measure
    """Measure; goal 150 ms."""
    command = [str(Path(sys.executable).parent / "trunkline"), "--help"]
    times = []
    # One more call, because the first may have to compile.
    for _ in range(sizes.help_calls + 1):
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begin)
    taken = [seconds * 1000 for seconds in times[1:]]
    return [
        Figure(
            "help_ms", median(taken), "trunkline --help, median", "ms", goal=150, better="at most"
        ),
        Figure("help_slowest_ms", max(taken), "  slowest", "ms"),
    ]
