"""The order in which the workers of pytest-xdist start tests."""

import os
from collections.abc import Sequence

import pytest

__all__ = ["slow_first"]


def slow_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Move slow tests to the start of the shares of the first two workers.

    ``--dist worksteal`` gives each worker an equal share of the list. A slow test that starts last
    is waited for by an otherwise idle machine; more than two at once disturb each other.
    """
    slow = [item for item in items if item.get_closest_marker("slow")]
    others = [item for item in items if not item.get_closest_marker("slow")]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers < 3:
        return [*slow, *others]
    first, second = slow[::2], slow[1::2]
    end = max(0, len(items) // workers - len(first))
    return [*first, *others[:end], *second, *others[end:]]
