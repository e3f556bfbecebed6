"""/v1/limits, /v1/quotas, /v1/breakers and /v1/queues."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from trunkline.errors import InvalidRequest
from trunkline.http.caller import CallerSession
from trunkline.http.routing import Routes
from trunkline.http.v1.reasons import Reason, Text
from trunkline.model import (
    BreakerStatus,
    BucketStatus,
    LimitStatus,
    QueueStatus,
    QuotaStatus,
    UsageBy,
    UsageSum,
)

__all__ = ["ROUTES"]

ROUTES: Final = Routes("limits, quotas, breakers and queues")

_UNKNOWN: Final = {404: "There is no such limit."}


class LimitsAnswer(msgspec.Struct, kw_only=True):
    """Every limit with all of its parts and what is in use."""

    limits: list[LimitStatus]


class BucketsAnswer(msgspec.Struct, kw_only=True):
    """The buckets of a limit that were used lately, those with most jobs first."""

    buckets: list[BucketStatus]


class LimitParts(Reason, kw_only=True, forbid_unknown_fields=True):
    """Parts of a limit, such as {"requests_per_minute": 60}; null removes one.

    The names are those of trunkline.set_limit. Parts of quotas and breakers are among them.
    """

    parts: dict[str, Any]


class SetAnswer(msgspec.Struct, kw_only=True):
    """Whether the object is new."""

    created: bool


class DoneAnswer(msgspec.Struct, kw_only=True):
    """Whether anything was changed."""

    changed: bool = True


class ResumedAnswer(msgspec.Struct, kw_only=True):
    """The buckets whose pause was lifted."""

    buckets: list[str]


class QuotaQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One limit or bucket, or all."""

    name: Text | None = None


class QuotasAnswer(msgspec.Struct, kw_only=True):
    """Quotas by limit, the fullest keys first."""

    quotas: list[QuotaStatus]


class UsageQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How to sum, and since when."""

    by: UsageBy = "limit"
    since: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class UsageAnswer(msgspec.Struct, kw_only=True):
    """What was settled, summed by day, limit, task or tenant."""

    usage: list[UsageSum]


class BreakersAnswer(msgspec.Struct, kw_only=True):
    """Every breaker, those that are not closed first."""

    breakers: list[BreakerStatus]


class Trip(Reason, kw_only=True, forbid_unknown_fields=True):
    """For how many seconds a breaker is opened; by default as its limit says."""

    seconds: Annotated[float, msgspec.Meta(gt=0, le=31_536_000)] | None = None


class TrippedAnswer(msgspec.Struct, kw_only=True):
    """When the probe is due."""

    probe_at: datetime


class ResetAnswer(msgspec.Struct, kw_only=True):
    """How many breakers were not closed."""

    reset: int


class QueuesAnswer(msgspec.Struct, kw_only=True):
    """Every queue with its jobs by state, each number up to `counted_up_to`."""

    queues: list[QueueStatus]


class PauseQueue(Reason, kw_only=True, forbid_unknown_fields=True):
    """Whether a paused queue also refuses new jobs."""

    refuse_enqueue: bool = False


class QueueSettings(Reason, kw_only=True, forbid_unknown_fields=True):
    """Settings of a queue; those that are left out stay."""

    # How many ready jobs it may hold; null: any number.
    max_depth: Annotated[int, msgspec.Meta(ge=1)] | msgspec.UnsetType | None = msgspec.UNSET
    ageing: bool | msgspec.UnsetType = msgspec.UNSET


@ROUTES.get("/v1/limits")
async def list_limits(session: CallerSession) -> LimitsAnswer:
    """List limits with all of their parts and what is in use."""
    return LimitsAnswer(limits=await session.operator.limits.list())


# A name may have slashes, as in document/{document}; so actions come before names.
@ROUTES.get("/v1/limits/{limit:path}/buckets", statuses=_UNKNOWN)
async def list_buckets(session: CallerSession, limit: str) -> BucketsAnswer:
    """List the buckets of a limit that were used lately, those with most jobs first."""
    await session.operator.limits.get(limit)
    return BucketsAnswer(buckets=list(await session.operator.limits.buckets(limit)))


@ROUTES.post("/v1/limits/{limit:path}/pause", statuses=_UNKNOWN)
async def pause_limit(session: CallerSession, limit: str, body: Reason) -> DoneAnswer:
    """Start no job that takes from a limit; running jobs continue."""
    await session.operator.limits.pause(limit, reason=body.reason)
    return DoneAnswer()


@ROUTES.post("/v1/limits/{limit:path}/resume", statuses=_UNKNOWN)
async def resume_limit(session: CallerSession, limit: str, body: Reason) -> ResumedAnswer:
    """Start jobs again and lift pauses of the provider."""
    buckets = await session.operator.limits.resume(limit, reason=body.reason)
    return ResumedAnswer(buckets=list(buckets))


@ROUTES.get("/v1/limits/{limit:path}", statuses=_UNKNOWN)
async def read_limit(session: CallerSession, limit: str) -> LimitStatus:
    """Return one limit by its name, with the keys in braces."""
    return await session.operator.limits.get(limit)


@ROUTES.put("/v1/limits/{limit:path}")
async def set_limit(session: CallerSession, limit: str, body: LimitParts) -> SetAnswer:
    """Create a limit or change the given parts, those of quotas and breakers too."""
    created = await session.operator.limits.set(limit, body.parts, reason=body.reason)
    return SetAnswer(created=created)


@ROUTES.get("/v1/quotas")
async def list_quotas(session: CallerSession, query: QuotaQuery) -> QuotasAnswer:
    """List quotas by limit, the fullest keys first."""
    return QuotasAnswer(quotas=await session.operator.quotas.list(query.name))


@ROUTES.get("/v1/usage")
async def read_usage(session: CallerSession, query: UsageQuery) -> UsageAnswer:
    """Return what was settled since a day, summed by day, limit, task or tenant."""
    usage = await session.operator.quotas.usage(query.by, query.since)
    return UsageAnswer(usage=list(usage))


@ROUTES.get("/v1/breakers")
async def list_breakers(session: CallerSession) -> BreakersAnswer:
    """List breakers, those that are not closed first."""
    return BreakersAnswer(breakers=await session.operator.breakers.list())


@ROUTES.post("/v1/breakers/{breaker:path}/trip", statuses=_UNKNOWN)
async def trip_breaker(session: CallerSession, breaker: str, body: Trip) -> TrippedAnswer:
    """Open a breaker by hand."""
    probe = await session.operator.breakers.trip(breaker, length=body.seconds, reason=body.reason)
    return TrippedAnswer(probe_at=probe)


@ROUTES.post("/v1/breakers/{breaker:path}/reset", statuses=_UNKNOWN)
async def reset_breaker(session: CallerSession, breaker: str, body: Reason) -> ResetAnswer:
    """Close a breaker, or those of all keys of a limit."""
    reset = await session.operator.breakers.reset(breaker, reason=body.reason)
    return ResetAnswer(reset=reset)


@ROUTES.get("/v1/queues")
async def list_queues(session: CallerSession) -> QueuesAnswer:
    """List queues with their jobs by state."""
    return QueuesAnswer(queues=await session.operator.queues.list())


@ROUTES.post("/v1/queues/{queue}/pause")
async def pause_queue(session: CallerSession, queue: str, body: PauseQueue) -> DoneAnswer:
    """Stop claims from a queue and, if asked, refuse new jobs; running jobs continue."""
    await session.operator.queues.pause(
        queue, reason=body.reason, refuse_enqueue=body.refuse_enqueue
    )
    return DoneAnswer()


@ROUTES.post("/v1/queues/{queue}/resume")
async def resume_queue(session: CallerSession, queue: str, body: Reason) -> DoneAnswer:
    """Allow claims and new jobs again."""
    return DoneAnswer(changed=await session.operator.queues.resume(queue, reason=body.reason))


@ROUTES.patch("/v1/queues/{queue}")
async def set_queue(session: CallerSession, queue: str, body: QueueSettings) -> DoneAnswer:
    """Limit how many ready jobs a queue may hold, or let it age."""
    if body.max_depth is msgspec.UNSET and body.ageing is msgspec.UNSET:
        raise InvalidRequest("Nothing is to be changed: pass max_depth or ageing.")
    queues = session.operator.queues
    if body.max_depth is not msgspec.UNSET:
        await queues.limit(queue, body.max_depth, reason=body.reason)
    if body.ageing is not msgspec.UNSET:
        await queues.age(queue, ageing=body.ageing, reason=body.reason)
    return DoneAnswer()
