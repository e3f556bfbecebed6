"""The engine's register of refusals."""

from typing import Any

import psycopg

__all__ = ["refuse", "registered"]

Superuser = psycopg.Connection[Any]


def registered(superuser: Superuser) -> list[tuple[str, str, str, str]]:
    """Return the register as (code, name, message, hint)."""
    rows = superuser.execute(
        "select r.code, r.name, r.message, r.hint from trunkline_internal.refusals() as r"
    )
    return [(code, name, message, hint) for code, name, message, hint in rows.fetchall()]


def refuse(superuser: Superuser, name: str) -> None:
    """Raise the refusal with this name, as functions of the engine do."""
    superuser.execute("select trunkline_internal.refuse(p_name => %s, p_detail => '{}')", (name,))
