"""Runs the API with uvicorn: `trunkline api`, and the part of `trunkline up`."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from trunkline.http.resources import Resources
from trunkline.http.settings import ApiSettings
from trunkline.worker.stop_signals import on_stop_signal

__all__ = ["serve", "server_of"]

_log = logging.getLogger("trunkline.http")
# How long answers that are under way may take after SIGTERM. Streams end at once.
_GRACE = 5
_KEEP_ALIVE = 65
# Milliseconds.
_STALLED = 30_000
_BACKLOG = 2048


class _Server(uvicorn.Server):
    """Ends as workers do. uvicorn would raise the signal again, and skip what comes after."""

    def __init__(self, config: uvicorn.Config, resources: Resources) -> None:
        super().__init__(config)
        self._resources = resources

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # Set on sockets that listen, because connections inherit it. Without it a connection whose
        # client takes nothing stays open for as long as the client acknowledges probes.
        for server in self.servers if hasattr(socket, "TCP_USER_TIMEOUT") else []:
            for listening in server.sockets:
                listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _STALLED)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._resources.streams.stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        with on_stop_signal(self._stop):
            yield

    def _stop(self, name: str) -> None:
        _log.info("stopping after %s", name)
        # Streams wait for this, and end before the server would cancel them.
        self._resources.stopping.set()
        # A second signal does not wait for answers that are under way.
        self.force_exit = self.should_exit
        self.should_exit = True


def server_of(app: Starlette, settings: ApiSettings) -> uvicorn.Server:
    """Return the server, not yet running."""
    return _Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            # Our own access log has neither queries nor bodies.
            access_log=False,
            log_config=None,
            server_header=False,
            lifespan="on",
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_GRACE,
            backlog=_BACKLOG,
            ws="none",
        ),
        app.state.resources,
    )


def serve(app: Starlette, settings: ApiSettings) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit code."""
    raise_file_limit()
    logging.getLogger("uvicorn.error").addFilter(_without_colours)
    server = server_of(app, settings)
    server.run()
    return 0 if server.started else 1


def _without_colours(record: logging.LogRecord) -> bool:
    """Drop the copy of the message that uvicorn adds for its own formatter."""
    vars(record).pop("color_message", None)
    return True


def raise_file_limit() -> None:
    """Let this process open as many files as it may: each connection of a client is one."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            _log.warning("the limit of open files stays at %s: %s", soft, error)
