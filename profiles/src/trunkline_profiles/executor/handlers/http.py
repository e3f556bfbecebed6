"""Small requests to the services of the handlers, which return a reply or raise a clear problem."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from trunkline_profiles.executor.handlers.problems import BadWork, ServiceProblem

__all__ = ["KEY_HEADER", "Reply", "Service"]

KEY_HEADER = "Idempotency-Key"

_LARGEST = 1 << 22


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a service."""

    status: int
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ServiceProblem("The service did not return JSON") from error


@dataclass(frozen=True, slots=True)
class Service:
    """One service by its address."""

    url: str
    timeout: float = 30.0

    def get(self, *path: str) -> Reply:
        return self._send("GET", path, None, {})

    def post(self, *path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        return self._send("POST", path, body, headers)

    def _send(
        self, method: str, path: tuple[str, ...], body: bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadWork(f"{self.url!r} is not the address of a service")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname, parts.port, timeout=self.timeout)
        target = "/".join([parts.path.rstrip("/"), *(quote(part, safe="") for part in path)])
        try:
            connection.request(method, target or "/", body, dict(headers))
            response = connection.getresponse()
            reply = Reply(response.status, response.read(_LARGEST))
        except (OSError, HTTPException) as error:
            raise ServiceProblem(f"{self.url} did not answer: {error}") from error
        finally:
            connection.close()
        if reply.status >= 500:
            raise ServiceProblem(f"{self.url} answered {reply.status}")
        return reply
