"""A server with callers of every kind, and requests to it as plain functions."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
import jwt
from psycopg import sql

from tests.support.databases import Database
from trunkline import schema
from trunkline.http import ApiSettings, JwtSettings, create_app
from trunkline.operate import SyncOperator

__all__ = ["SECRET", "Api", "Site", "token"]

SECRET: Final = "a secret of the tests, long enough for HS256"


def token(secret: str = SECRET, *, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
    """Return a token that is valid for a minute, unless the claims say otherwise."""
    claims = {"exp": time.time() + 60, "sub": "ada", **claims}
    kept = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(kept, secret, algorithm="HS256", headers=dict(header or {}))


@dataclass(slots=True)
class Site:
    """A database, the login of the server, and a role of tenants. Roles belong to the cluster."""

    database: Database
    login: str
    tenant_role: str
    keys: dict[str, str] = field(default_factory=dict)

    @classmethod
    def create(cls, database: Database) -> Site:
        """Set up roles as docs/how-to/http.md describes it."""
        suffix = database.name[-12:]
        site = cls(database, f"api_{suffix}", f"client_{suffix}")
        login, role = sql.Identifier(site.login), sql.Identifier(site.tenant_role)
        with database.superuser() as superuser:
            superuser.execute(sql.SQL("create role {} nologin").format(role))
            superuser.execute(
                sql.SQL("create role {} login noinherit password 'of the tests'").format(login)
            )
            schema.install(
                database.dsn, tenant_roles=[site.tenant_role], authenticators=[site.login]
            )
            superuser.execute(sql.SQL("grant {} to {}").format(role, login))
            superuser.execute("select trunkline.register_task('report')")
        with SyncOperator(database.superuser_dsn) as operator:
            for role_name in ("operator", "producer", "reader"):
                site.keys[role_name] = operator.keys.create(role_name, role_name).key
            for tenant in "ab":
                created = operator.keys.create(f"of {tenant}", "producer", tenant=tenant)
                site.keys[tenant] = created.key
        return site

    @property
    def dsn(self) -> str:
        """The connection string of the server's login."""
        return self.database.superuser_dsn.replace("//postgres@", f"//{self.login}@")

    def drop_roles(self) -> None:
        with self.database.superuser() as superuser:
            for name in (self.login, self.tenant_role):
                superuser.execute(
                    sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(name))
                )


class Api:
    """Requests to an application in this process. Its event loop runs during requests alone."""

    def __init__(
        self,
        site: Site,
        settings: ApiSettings | None = None,
        *,
        dsn: str | None = None,
        **options: Any,
    ) -> None:
        self.site = site
        self.settings = settings or ApiSettings(
            jwt=JwtSettings(secret=SECRET, roles=(site.tenant_role,))
        )
        self.app = create_app(dsn or site.dsn, self.settings, **{"routes": [], **options})
        self._runner = asyncio.Runner()
        self._client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app, client=("192.0.2.1", 4711)),
            base_url="http://api.example.org",
        )

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.run(self.app.state.resources.close())
        self._runner.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        by: str | None = None,
        bearer: str | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> httpx2.Response:
        """Send a request: by a key of the site, with a bearer of the test, or by nobody."""
        credentials = self.site.keys[by] if by is not None else bearer
        given = {**(headers or {})}
        if credentials is not None:
            given["Authorization"] = f"Bearer {credentials}"
        return self._runner.run(self._client.request(method, path, headers=given, **options))

    def run(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Run a call of the application itself in its event loop."""
        return self._runner.run(call)

    def ok(self, method: str, path: str, **options: Any) -> Any:
        """Send a request that must succeed; return its JSON."""
        response = self.send(method, path, **options)
        assert response.status_code < 300, response.text
        return response.json() if response.content else None

    def refused(self, status: int, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Send a request that must be refused with this status; return the problem."""
        response = self.send(method, path, **options)
        assert response.status_code == status, response.text
        assert response.headers["content-type"] == "application/problem+json"
        problem: dict[str, Any] = json.loads(response.content)
        assert problem["status"] == status
        assert problem["code"]
        assert "Traceback" not in response.text
        return problem

    def tenant(self, name: str | None = "a", **claims: Any) -> str:
        """Return a token of a tenant."""
        return token(tenant=name, **claims)
