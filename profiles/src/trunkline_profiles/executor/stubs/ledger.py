"""A service's effects by idempotency key; a second effect with the same key is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Ledger"]

T = TypeVar("T")


class Ledger(Generic[T]):
    """Effects by key; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._effects: dict[str, T] = {}
        self.refused: list[str] = []

    def record(self, key: str, make: Callable[[], T]) -> T | None:
        """Cause the effect and store it; None, without an effect, if the key was used before."""
        with self._lock:
            if key in self._effects:
                self.refused.append(key)
                return None
            self._effects[key] = make()
            return self._effects[key]

    def find(self, key: str) -> T | None:
        """The effect of a key."""
        with self._lock:
            return self._effects.get(key)

    def keys(self) -> list[str]:
        """All keys, in the order of their effects."""
        with self._lock:
            return list(self._effects)
