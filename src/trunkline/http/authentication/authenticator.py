"""Finds the caller of a request."""

from __future__ import annotations

from typing import Final

from starlette.requests import HTTPConnection

from trunkline.db.pool import AsyncPool
from trunkline.errors import MalformedRequest, SignInRefused
from trunkline.http.authentication.failures import SignInFailures
from trunkline.http.authentication.service_keys import PREFIX, ServiceKeys
from trunkline.http.authentication.tokens import Tokens
from trunkline.http.caller import ANONYMOUS, Caller
from trunkline.http.settings import ApiSettings

__all__ = ["Authenticator"]

_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer error="invalid_token"'}


class Authenticator:
    """Checks the header Authorization: a token or a service key, as a bearer."""

    def __init__(self, settings: ApiSettings, pool: AsyncPool) -> None:
        self._tokens = Tokens(settings.jwt)
        self._keys = ServiceKeys(pool)
        self._failures = SignInFailures(settings.sign_in_failures)

    async def caller(self, request: HTTPConnection) -> Caller:
        """Return the caller; the anonymous one if the request has no credentials."""
        headers = request.headers.getlist("authorization")
        if not headers:
            return ANONYMOUS
        if len(headers) > 1:
            raise MalformedRequest("The request has several headers Authorization.")
        address = request.client.host if request.client is not None else "unknown"
        self._failures.check(address)
        scheme, _, credentials = headers[0].partition(" ")
        try:
            if scheme.lower() != "bearer" or not credentials.strip():
                raise SignInRefused("The header Authorization is not a bearer token.")
            return await self._checked(credentials.strip())
        except SignInRefused as error:
            self._failures.add(address)
            error.headers.update(_CHALLENGE)
            raise

    async def _checked(self, credentials: str) -> Caller:
        if credentials.startswith(PREFIX):
            return await self._keys.caller(credentials)
        return await self._tokens.caller(credentials)
