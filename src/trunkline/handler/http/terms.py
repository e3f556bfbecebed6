"""The limit and cost of the calls of a client, and the actual cost of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from trunkline.handler.amounts import amounts
from trunkline.handler.patience import Wait, patience

if TYPE_CHECKING:
    import httpx2

__all__ = ["Limit", "Terms", "terms"]

Limit = str | Literal[False] | None

_TOO_MANY: Final = 429


@dataclass(frozen=True, slots=True)
class Terms:
    """The limit and cost of every call of one client; see Context.http_client."""

    limit: Limit
    keys: Mapping[str, Any]
    cost: Mapping[str, int]
    wait: Wait
    settle: Callable[[httpx2.Response], Mapping[str, Any]] | None
    raise_for_limit: bool

    def actual(
        self, response: httpx2.Response | None, *, refused: bool, received: int
    ) -> dict[str, Any]:
        """Return the actual cost of a call; amounts that are absent stay as estimated.

        The response is None if its body was not read to the end as a whole.
        """
        actual: dict[str, Any] = {}
        if "units" in self.cost and received:
            actual["units"] = received
        if response is None:
            return actual
        if refused:
            # The provider counted a request that was refused, but did no work for it.
            return actual | ({"tokens": 0} if response.status_code == _TOO_MANY else {})
        if self.settle is not None:
            return actual | ({} if response.is_error else dict(self.settle(response)))
        used = _total_tokens(response)
        return actual if used is None else actual | {"tokens": used}


def terms(
    *,
    limit: Limit,
    keys: Mapping[str, Any] | None,
    tokens: int | None,
    requests: int,
    units: int | None,
    wait: Wait,
    settle: Callable[[httpx2.Response], Mapping[str, Any]] | None,
    raise_for_limit: bool,
) -> Terms:
    """Check the arguments of Context.http_client."""
    patience(wait)
    cost = amounts(requests=requests, tokens=tokens, units=units)
    return Terms(limit, dict(keys or {}), cost, wait, settle, raise_for_limit)


def _total_tokens(response: httpx2.Response) -> int | None:
    """Return usage.total_tokens, which providers of language models report."""
    if b'"total_tokens"' not in response.content:
        return None
    try:
        used = response.json()["usage"]["total_tokens"]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
    return used if isinstance(used, int) and not isinstance(used, bool) and used >= 0 else None
