"""The caller of a request, and the session in which a route runs calls."""

from __future__ import annotations

from typing import cast

from starlette.requests import HTTPConnection

from trunkline.errors import SignInRequired
from trunkline.http.caller import Caller, CallerSession
from trunkline.http.resources import Resources

__all__ = ["caller_of", "resources_of", "session_for", "session_of"]


def resources_of(request: HTTPConnection) -> Resources:
    """Return what the requests of one server share: settings, connections, store."""
    return cast("Resources", request.app.state.resources)


async def caller_of(request: HTTPConnection) -> Caller:
    """Return who sent the request; the anonymous caller if it has no credentials.

    Credentials that are not valid are refused, also where anonymous callers are welcome.
    """
    caller = request.scope.get("trunkline.caller")
    if caller is None:
        caller = await resources_of(request).authenticator.caller(request)
        # For further calls of this function, and for the access log.
        request.scope["trunkline.caller"] = caller
    return cast("Caller", caller)


async def session_of(request: HTTPConnection) -> CallerSession:
    """Return the session of a caller who has signed in; anonymous ones are refused with 401."""
    caller = await caller_of(request)
    if caller.is_anonymous:
        raise SignInRequired("Sign in first.", headers={"WWW-Authenticate": "Bearer"})
    return session_for(request, caller)


def session_for(request: HTTPConnection, caller: Caller) -> CallerSession:
    """Return a session for a caller whom a route knows otherwise, such as by a stream's ticket."""
    resources = resources_of(request)
    return CallerSession(caller, resources.pool, resources.store)
