"""The API in a process of its own: ``python -m bench.live.server DSN``; prints its port."""

import resource
import socket
import sys

import uvicorn

from trunkline.http import ApiSettings, create_app
from trunkline.http.streams.settings import StreamSettings

__all__: list[str] = []


def main(dsn: str) -> None:
    """Serve until the process is ended."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    settings = ApiSettings(connections=4)
    app = create_app(dsn, settings, routes=[])
    limits: StreamSettings = app.state.resources.streams.settings
    object.__setattr__(limits, "most_per_tenant", limits.most)
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(listening.getsockname()[1], flush=True)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    server.run([listening])


if __name__ == "__main__":
    main(sys.argv[1])
