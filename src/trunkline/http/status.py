"""/health and /ready, for load balancers and monitors; anybody may ask."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.requests import Request

from trunkline.http.answers import Answer
from trunkline.http.routing import Routes
from trunkline.http.sessions import resources_of

__all__ = ["ROUTES", "HealthAnswer", "ReadyAnswer"]

ROUTES: Final = Routes("server")
_UNAVAILABLE: Final = 503


class HealthAnswer(msgspec.Struct, kw_only=True):
    """Whether the engine works: the database answers and no duty is late."""

    status: str
    late_duties: int | None = None


class ReadyAnswer(msgspec.Struct, kw_only=True):
    """Whether this process can take requests."""

    status: str


@ROUTES.get("/health", public=True, statuses={503: "A duty is late, or the database is away."})
async def health(request: Request) -> Answer[HealthAnswer]:
    """Report whether the database answers and all duties run on time."""
    late = await resources_of(request).health.late_duties()
    if late is None:
        return Answer(HealthAnswer(status="database unreachable"), status=_UNAVAILABLE)
    if late:
        return Answer(HealthAnswer(status="late", late_duties=late), status=_UNAVAILABLE)
    return Answer(HealthAnswer(status="ok", late_duties=0))


@ROUTES.get("/ready", public=True, statuses={503: "The database is away."})
async def ready(request: Request) -> Answer[ReadyAnswer]:
    """Report whether this process can take requests."""
    if await resources_of(request).health.late_duties() is None:
        return Answer(ReadyAnswer(status="database unreachable"), status=_UNAVAILABLE)
    return Answer(ReadyAnswer(status="ok"))
