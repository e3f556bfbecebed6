"""The HTTP API with the routes of one profile, on a real port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from psycopg import sql

from tests.support.databases import Database
from tests.support.waiting import until
from trunkline import schema
from trunkline.artifacts import LocalStore
from trunkline.http import ApiSettings, Routes, create_app

__all__ = ["running"]


@contextmanager
def running(database: Database, store: LocalStore, routes: Routes) -> Iterator[str]:
    """Start the server with a login of its own, as a deployment does; yields its address."""
    login = f"api_{database.name[-12:]}"
    superuser = database.superuser()
    superuser.execute(sql.SQL("create role {} login noinherit").format(sql.Identifier(login)))
    schema.install(database.dsn, authenticators=[login])
    dsn = database.superuser_dsn.replace("//postgres@", f"//{login}@")
    app = create_app(dsn, ApiSettings(), store=store, routes=[routes])
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    until(lambda: server.started, "the server has started")
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        superuser.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(login)))
