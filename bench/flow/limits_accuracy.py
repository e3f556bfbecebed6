"""The calls that a provider sees from eight worker processes under one limit with all its parts.

Requests and tokens per minute, requests per hour and concurrent calls: each of them is the tightest
at some time. The first run is undisturbed; in the second, a worker is killed every few seconds.
"""

import random
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.figures import Figure
from bench.flow.fire import Findings, Fire, open_fire
from bench.place import Place
from bench.sizes import Sizes

__all__ = ["LIMITS", "run", "work"]

LIMITS: Mapping[str, int] = {
    "requests_per_minute": 300,
    "tokens_per_minute": 140_000,
    "requests_per_hour": 900,
    "tokens_per_hour": 1_000_000,
    "concurrency": 8,
}
_MINUTE, _HOUR = 0.93, 0.95


def work(limits: Mapping[str, int]) -> list[int]:
    """Tokens of more jobs than the hour allows: small ones first, where requests are the tighter
    limit, then large ones, where tokens are."""
    draw = random.Random(3)
    small = [draw.randint(100, 700) for _ in range(limits["requests_per_minute"])]
    large = [draw.randint(300, 900) for _ in range(limits["requests_per_hour"])]
    return small + large


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goals: no limit exceeded, 93 % of the minute, 95 % of the hour."""
    figures = []
    for kind, kill_every in (("calm", None), ("killed", sizes.flow.kill_every)):
        fire = Fire(
            LIMITS,
            work(LIMITS),
            seconds=sizes.flow.accuracy_seconds,
            processes=sizes.flow.accuracy_processes,
            kill_every=kill_every,
        )
        with (
            place.database(f"accuracy_{kind}") as dsn,
            tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder,
        ):
            figures += _figures(kind, open_fire(dsn, fire, Path(folder) / "workers.log"))
    return figures


def _figures(kind: str, found: Findings) -> list[Figure]:
    key, over = f"limits_accuracy_{kind}", sum(found.over.values())
    return [
        Figure(f"{key}_calls", found.calls, f"{kind}: calls", "calls"),
        Figure(f"{key}_kills", found.kills, "  workers killed", "times"),
        Figure(f"{key}_at_once", found.most_at_once, "  most at once", "calls"),
        Figure(f"{key}_over", over, "  over any limit", "calls", goal=0, better="at most"),
        Figure(f"{key}_minute", found.minute_used, "  of the minute's capacity", goal=_MINUTE),
        Figure(f"{key}_hour", found.hour_used, "  of the hour's capacity", goal=_HOUR),
    ]
