"""Settings of live streams, from the environment."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from trunkline.errors import ApiSettingInvalid, InvalidDuration
from trunkline.http.settings import ApiSettings
from trunkline.model import seconds

__all__ = ["StreamSettings"]

_SHORTEST_SECRET: Final = 32
_PURPOSE: Final = b"trunkline stream tickets"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """How many streams there may be, and how long."""

    # After this time a stream ends, and the client opens a new one.
    timeout: float = 900.0
    # A comment is sent after this time without an event.
    comment_every: float = 15.0
    # A client that takes nothing for this long is gone.
    stalled: float = 30.0
    most: int = 10_000
    most_per_tenant: int = 1000
    ticket_lifetime: float = 60.0
    # Where LISTEN works, if the server's connection string leads through a pooler.
    listen_dsn: str | None = None
    ticket_secret: bytes = b""

    @classmethod
    def of(cls, settings: ApiSettings, environment: Mapping[str, str] | None = None) -> Self:
        """Return the settings of the environment.

        Tickets are signed with a secret that all processes of the API share: its own, or one
        derived from the secret of tokens. Without either each process believes its own tickets.
        """
        variables = os.environ if environment is None else environment
        defaults = cls()
        own = variables.get("TRUNKLINE_API_TICKET_SECRET", "").strip()
        if own and len(own) < _SHORTEST_SECRET:
            raise _invalid(
                "TRUNKLINE_API_TICKET_SECRET",
                f"a secret has at least {_SHORTEST_SECRET} characters",
            )
        shared = own or settings.jwt.secret
        return cls(
            timeout=_duration(variables, "TRUNKLINE_API_STREAM_TIMEOUT", defaults.timeout),
            most=_number(variables, "TRUNKLINE_API_STREAMS", defaults.most),
            most_per_tenant=_number(
                variables, "TRUNKLINE_API_STREAMS_PER_TENANT", defaults.most_per_tenant
            ),
            listen_dsn=variables.get("TRUNKLINE_API_LISTEN_DSN", "").strip() or None,
            ticket_secret=(
                hmac.digest(shared.encode(), _PURPOSE, "sha256")
                if shared
                else secrets.token_bytes(32)
            ),
        )


def _duration(variables: Mapping[str, str], name: str, default: float) -> float:
    text = variables.get(name, "").strip()
    if not text:
        return default
    try:
        value = seconds(float(text) if text.replace(".", "", 1).isdecimal() else text)
    except (ValueError, InvalidDuration) as error:
        raise _invalid(name, str(error)) from error
    if value < 1:
        raise _invalid(name, "write a second or more")
    return value


def _number(variables: Mapping[str, str], name: str, default: int) -> int:
    text = variables.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise _invalid(name, "write a number from 1 to 1000000")
    return int(text)


def _invalid(name: str, problem: str) -> ApiSettingInvalid:
    return ApiSettingInvalid(
        f"{name} has an invalid value: {problem}",
        hint="docs/how-to/live-events.md lists the settings of streams.",
    )
