"""Who asks: the caller of a request, and the session in which its calls run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal, LiteralString, TypeVar

from trunkline.artifacts import AsyncStore
from trunkline.client import AsyncClient
from trunkline.db.call import Call, json_text
from trunkline.db.patient import CALL_PATIENCE
from trunkline.db.pool import AsyncPool
from trunkline.operate import AsyncOperator

__all__ = ["ANONYMOUS", "Caller", "CallerSession"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and as which role of the database its calls run."""

    kind: Literal["anonymous", "key", "token"]
    # For the operator log and access logs: the name of a key, or the subject of a token.
    name: str
    # Empty for anonymous callers, who never reach the database.
    role: str = ""
    tenant: str | None = None
    # The claims of a token; empty for a key.
    claims: Mapping[str, Any] = field(default_factory=dict)
    # When the token or key expires. A stream has to end then.
    expires_at: datetime | None = None
    # The id of a service key, or the `sub` of a token; None for anonymous callers.
    subject: str | None = None

    @property
    def is_anonymous(self) -> bool:
        """Whether the request had no credentials."""
        return self.kind == "anonymous"

    def settings(self) -> dict[str, str]:
        """Return the settings that each transaction of this caller starts with.

        These are the ones that PostgREST sets: the role, then the claims, both local to the
        transaction. A key has no claims; it narrows its role to its tenant.
        """
        settings = {"role": self.role, "trunkline.actor": self.name}
        if self.kind == "token":
            settings["request.jwt.claims"] = json_text(dict(self.claims))
        elif self.tenant is not None:
            settings["trunkline.tenant"] = self.tenant
        return settings


ANONYMOUS: Final = Caller("anonymous", "anonymous")


class CallerSession:
    """Runs calls as one caller: each in one short transaction, on a connection of the server."""

    def __init__(self, caller: Caller, pool: AsyncPool, store: AsyncStore) -> None:
        self.caller = caller
        self._runner = _Runner(pool, caller.settings())
        self._store = store

    async def run(self, call: Call[T]) -> T:
        """Run one call of the engine as the caller."""
        return await self._runner.run(call)

    async def query(self, sql: LiteralString, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run one statement with placeholders %s as the caller, and return its rows.

        For functions of profiles; for those of the engine use `operator` and `client`.
        """
        return await self._runner.run(Call(sql, parameters, _rows))

    @cached_property
    def operator(self) -> AsyncOperator:
        """The verbs of `trunkline.operate`, as the caller."""
        return AsyncOperator.over(self._runner, store=self._store)

    @cached_property
    def client(self) -> AsyncClient:
        """The verbs of `trunkline.client`, as the caller: enqueue jobs, start workflows."""
        return AsyncClient.over(self._runner, self._store)


class _Runner:
    """An `AsyncCaller` that adds the settings of a caller to each transaction."""

    def __init__(self, pool: AsyncPool, settings: Mapping[str, str]) -> None:
        self._pool = pool
        self._settings = settings

    @property
    def address(self) -> str:
        # Messages go to callers, who need not know where the database is.
        return ""

    async def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        return await self._pool.run_with(call, self._settings, patience)

    async def run_with(
        self, call: Call[T], settings: Mapping[str, str], patience: float = CALL_PATIENCE
    ) -> T:
        # Those of the caller win, whatever a route passes on.
        return await self._pool.run_with(call, {**settings, **self._settings}, patience)

    async def server_dsn(self) -> str:
        return await self._pool.server_dsn()

    async def is_pooled(self) -> bool:
        return await self._pool.is_pooled()

    async def close(self) -> None:
        """The pool belongs to the server, so nothing is closed here."""


def _rows(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list(rows)
