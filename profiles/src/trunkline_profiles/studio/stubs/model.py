"""A text model with rate limits behind HTTP, which answers a repeated key without charging again.

It has the limits, the account and the orders of the provider of profile ``clinical``. In addition,
GET /stub/keys returns how often each idempotency key arrived.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping

from trunkline_profiles.clinical.stubs.limits import Model
from trunkline_profiles.clinical.stubs.provider import DEFAULT_MODEL, Answer, Provider
from trunkline_profiles.studio.handlers.text import KEY_HEADER
from trunkline_profiles.studio.stubs import prose

__all__ = ["DEFAULT_MODEL", "Model", "TextModel"]

_CHAT = "/v1/chat/completions"


class TextModel(Provider):
    """Serves on a local port until closed."""

    def __init__(
        self, model: Model | None = None, *, port: int = 0, key: str | None = None
    ) -> None:
        self._keys: Counter[str] = Counter()
        self._answers: dict[str, Answer] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()
        self._refused: set[str] = set()
        super().__init__(model, port=port, key=key, write=prose.write)

    @property
    def keys(self) -> dict[str, int]:
        """How often each key arrived."""
        with self._guard:
            return dict(self._keys)

    @property
    def paid(self) -> int:
        """How many keys were served, which is what is paid for."""
        with self._guard:
            return len(self._answers)

    def refuse_key(self, key: str) -> None:
        """Answer every request with this key with a server error."""
        with self._guard:
            self._refused.add(key)

    def handle(self, method: str, path: str, given: Mapping[str, str], body: bytes) -> Answer:
        """Respond to one request; a repeated one with the first answer."""
        if (method, path) == ("GET", "/stub/keys"):
            content = json.dumps(self.keys).encode()
            return 200, {"Content-Type": "application/json"}, content
        key = given.get(KEY_HEADER.lower())
        if path != _CHAT or key is None:
            return super().handle(method, path, given, body)
        with self._guard:
            self._keys[key] += 1
            if key in self._refused:
                return 500, {"Content-Type": "application/json"}, b"{}"
            lock = self._locks.setdefault(key, threading.Lock())
        # A repetition that arrives while the first is under way waits for its answer.
        with lock:
            known = self._answers.get(key)
            if known is not None:
                return known
            answer = super().handle(method, path, given, body)
            if answer[0] == 200:
                with self._guard:
                    self._answers[key] = answer
            return answer
