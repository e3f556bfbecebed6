"""What a handler is given to stay within limits: grants, settlements, and calls to providers.

Each of these has an asynchronous form for `async def` handlers and a blocking one for the others;
here is what they have in common, and what they are for a type checker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import TracebackType
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypedDict, TypeVar, Unpack
from uuid import UUID

from trunkline.client.http.outgoing import Outgoing, outgoing
from trunkline.client.http.response import Response
from trunkline.errors import InvalidCost, InvalidTask
from trunkline.model import Duration, seconds

__all__ = [
    "Answer",
    "AsyncAnswer",
    "Flow",
    "Grant",
    "GrantRequest",
    "Http",
    "HttpCall",
    "Patience",
    "amounts",
    "patience",
]

T_co = TypeVar("T_co", covariant=True)

Wait = bool | Duration | None
Limit = str | Literal[False] | None

_HTTP_TIMEOUT: Final = "10s"
_TOO_MANY: Final = 429
# Of who does not say how long: the window of a minute is worth waiting for in the handler.
_UNSAID_WAIT: Final = 90.0
# What may last for days, or until somebody comes: a runner is not kept for it.
_LASTING: Final = frozenset({"quota", "maintenance", "disabled"})


class Answer(Generic[T_co]):
    """What a call came to. A thread need not await it, and may."""

    def __init__(self, value: T_co) -> None:
        self._value = value

    def __await__(self) -> Generator[Any, Any, T_co]:
        yield from ()
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)


class AsyncAnswer(Answer[T_co]):
    """The same in an asynchronous handler, where it is to be awaited."""

    def __init__(self, coming: Coroutine[Any, Any, T_co]) -> None:
        self._coming = coming

    def __await__(self) -> Generator[Any, Any, T_co]:
        return self._coming.__await__()

    def __bool__(self) -> bool:
        raise InvalidTask("An answer is used that was not awaited", hint="Write `await` before it.")


class Grant(ABC):
    """Room within a limit for one call, until it is settled or expires, or the attempt ends."""

    id: UUID
    expires_at: datetime | None

    def settle(
        self,
        *,
        tokens: int | None = None,
        requests: int | None = None,
        units: int | None = None,
        cost: float | Decimal | None = None,
    ) -> Answer[bool]:
        """Say what the call really took; what is left out stays as it was estimated.

        Await it in an asynchronous handler; elsewhere just call it. The first time counts and is
        answered with True.
        """
        return self._settle(amounts(tokens=tokens, requests=requests, units=units, cost=cost))

    def settle_answer(self, actual: Mapping[str, Any], received: int) -> Answer[bool]:
        """The same with how many bytes arrived, which a quota in bytes counts."""
        return self._settle({**amounts(**actual), "bytes": received})

    @abstractmethod
    def _settle(self, actual: Mapping[str, Any]) -> Answer[bool]: ...


class GrantRequest(AbstractAsyncContextManager[Grant], AbstractContextManager[Grant]):
    """Waits for room within a limit and gives a Grant; leaving the block settles it.

    `async with` in an asynchronous handler, `with` in the others. If the handler did not settle
    it, also after an error, what was estimated stays charged.
    """

    async def __aenter__(self) -> Grant:
        raise InvalidTask("`async with ctx.grant()` in a plain handler", hint="Write `with`.")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Never entered."""

    def __enter__(self) -> Grant:
        raise InvalidTask(
            "`with ctx.grant()` in an `async def` handler", hint="Write `async with`."
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Never entered."""


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request, and what of which limit it takes."""

    outgoing: Outgoing
    timeout: float
    limit: Limit
    keys: Mapping[str, Any]
    cost: Mapping[str, int]
    wait: Wait
    settle: Callable[[Response], Mapping[str, Any]] | None
    raise_for_limit: bool

    def actual(self, response: Response, *, refused: bool) -> dict[str, Any]:
        """What an answer says the call took; what is absent stays as it was estimated."""
        found: dict[str, Any] = {}
        if "units" in self.cost:
            found["units"] = response.wire_bytes
        if refused:
            # Too many: it was counted as a request, and nothing was done for it.
            return found | ({"tokens": 0} if response.status == _TOO_MANY else {})
        if self.settle is not None and response.ok:
            return found | dict(self.settle(response))
        if self.settle is None and (used := _total_tokens(response)) is not None:
            found["tokens"] = used
        return found


def _total_tokens(response: Response) -> int | None:
    """What providers of language models report as usage.total_tokens."""
    if b'"total_tokens"' not in response.body:
        return None
    try:
        used = response.json()["usage"]["total_tokens"]
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return used if isinstance(used, int) and not isinstance(used, bool) and used >= 0 else None


class HttpOptions(TypedDict, total=False):
    """The keyword arguments of a call; see Http.request."""

    json: Any
    data: bytes | str | Mapping[str, Any] | None
    headers: Mapping[str, str] | None
    limit: Limit
    keys: Mapping[str, Any] | None
    tokens: int | None
    requests: int
    units: int | None
    timeout: Duration
    settle: Callable[[Response], Mapping[str, Any]] | None
    wait: Wait
    raise_for_limit: bool


class Http(ABC):
    """Calls to providers within their limits. In an asynchronous handler each is awaited.

    A call takes room of a limit, is sent, and settled with what the answer says. Connections are
    kept and used again. Redirects are not followed, proxies of the environment not used.
    """

    def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        data: bytes | str | Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        limit: Limit = None,
        keys: Mapping[str, Any] | None = None,
        tokens: int | None = None,
        requests: int = 1,
        units: int | None = None,
        timeout: Duration = _HTTP_TIMEOUT,
        settle: Callable[[Response], Mapping[str, Any]] | None = None,
        wait: Wait = None,
        raise_for_limit: bool = True,
    ) -> Response:
        """Send a request within a limit and return the whole answer, whatever its status.

        The limit is the first that the task names, or the given one, or none with `limit=False`;
        its keys are filled in from `keys`, then from the payload. `tokens`, `requests` and `units`
        are the estimate. `settle` makes of a good answer what it really took, such as
        `{"tokens": 812}`; without it that is `usage.total_tokens` of a JSON answer. A quota in
        bytes, and `units` where they are given, are settled with the bytes that arrived, headers
        included, also of a call that failed.

        `timeout` is the total of connecting, headers and body, after which HttpTimeout fails the
        attempt; waiting for room is not part of it (see Context.grant for `wait`). A 429, and a 503
        with Retry-After, holds the limit for everybody and raises RateLimited, which puts the
        attempt off; `raise_for_limit=False` returns such an answer instead.
        """
        patience(wait)
        return self._send(  # type: ignore[no-any-return]
            HttpCall(
                outgoing(method, url, json=json, data=data, headers=headers),
                seconds(timeout),
                limit,
                dict(keys or {}),
                amounts(requests=requests, tokens=tokens, units=units),
                wait,
                settle,
                raise_for_limit,
            )
        )

    def get(self, url: str, **options: Unpack[HttpOptions]) -> Response:
        """GET; see request."""
        return self.request("GET", url, **options)

    def post(self, url: str, **options: Unpack[HttpOptions]) -> Response:
        """POST; see request."""
        return self.request("POST", url, **options)

    @abstractmethod
    def _send(self, call: HttpCall) -> Any: ...


class Flow(Protocol):
    """What a context needs of it; AsyncFlow and its blocking twin."""

    @property
    def http(self) -> Http:
        """See Context.http."""

    def grant(
        self,
        limit: str,
        *,
        cost: Mapping[str, int],
        keys: Mapping[str, Any],
        wait: Wait,
        ttl: Duration,
    ) -> GrantRequest:
        """See Context.grant."""

    def settle(self, actual: Mapping[str, Any]) -> Answer[bool]:
        """See Context.settle."""


def amounts(**given: float | Decimal | None) -> dict[str, Any]:
    """The amounts that were given, none of them negative."""
    found: dict[str, Any] = {}
    for name, amount in given.items():
        if amount is None:
            continue
        kinds = (int, float, Decimal) if name == "cost" else (int,)
        # A Decimal as a number of JSON; its digits stay.
        value = float(amount) if isinstance(amount, Decimal) else amount
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < 10**12:
            raise InvalidCost(
                "cost is not valid",
                hint=f"Pass {name} as a number from 0 on"
                + ("." if name == "cost" else " without a fraction."),
                detail={"amount": name, "got": repr(value)},
            )
        found[name] = value
    return found


class Patience(NamedTuple):
    """How long a handler waits for room."""

    # In seconds; None: for as long as it takes.
    bound: float | None
    # Whether also for what may last for days.
    asked_for: bool

    def ends(self, reason: str | None, free_in: float | None, waited: float) -> bool:
        """Whether to give up: there will be no room in time."""
        if reason in _LASTING and not self.asked_for:
            return True
        if self.bound is None:
            return False
        left = self.bound - waited
        return left <= 0 or (free_in or 0.0) > left

    def pause(self, pause: float, waited: float) -> float:
        """No longer than there is patience."""
        return pause if self.bound is None else min(pause, self.bound - waited)


def patience(wait: Wait) -> Patience:
    """What `wait` means."""
    if wait is None:
        return Patience(_UNSAID_WAIT, asked_for=False)
    if isinstance(wait, bool):
        return Patience(None if wait else 0.0, asked_for=True)
    return Patience(seconds(wait), asked_for=True)
