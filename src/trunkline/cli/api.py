"""``trunkline api``: the HTTP API."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import click

from trunkline.cli import options
from trunkline.db.dsn import resolve_ready
from trunkline.errors import ApiNotInstalled
from trunkline.telemetry import set_up_logging

__all__ = ["api", "http_room"]


def http_room() -> ModuleType:
    """Import the HTTP API, which is an extra."""
    try:
        return importlib.import_module("trunkline.http.serving")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == "trunkline":
            raise
        raise ApiNotInstalled(
            f"The HTTP API needs packages that are not installed: {error.name}"
        ) from error


@click.command(
    epilog=options.examples(
        "trunkline api",
        "trunkline api --host 0.0.0.0 --port 8100 --log json",
        "TRUNKLINE_JWT_JWKS_URLS=https://id.example.org/keys trunkline api",
    )
)
@options.with_options(
    click.option("--host", metavar="ADDRESS", help="Where to listen [default: 127.0.0.1]."),
    click.option(
        "--port", type=click.IntRange(0, 65535), metavar="N", help="The port [default: 8100]."
    ),
    click.option(
        "--connections",
        type=click.IntRange(1, 1000),
        metavar="N",
        help="Connections to the database [default: 10].",
    ),
    click.option(
        "--log",
        "log_format",
        type=click.Choice(["console", "json"]),
        default="console",
        show_default=True,
        help="Log lines for people or for programs, on standard error.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
    ),
    options.dsn,
)
@click.pass_context
def api(
    ctx: click.Context, /, *, dsn: str | None, log_format: str, log_level: str, **given: Any
) -> None:
    """Serve the HTTP API until SIGTERM or Ctrl-C.

    It has no workers: run `trunkline worker` as well. Its login acts for callers; prepare one with
    `trunkline schema install --authenticator LOGIN`. Its other settings are variables of the
    environment; docs/how-to/http.md lists them. It is an extra: pip install 'trunkline[api]'.
    """
    serving = http_room()
    set_up_logging(log_format, log_level)
    http = importlib.import_module("trunkline.http")
    settings = http.ApiSettings.from_environment(**given)
    with resolve_ready(dsn) as target:
        app = http.create_app(target, settings)
        ctx.exit(serving.serve(app, settings))
