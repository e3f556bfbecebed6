"""Maps the SQLSTATE of a database error to an exception."""

import json
from collections.abc import Mapping
from typing import Any, Final

from trunkline.errors import durable_refusals, schema
from trunkline.errors import refusals as ours
from trunkline.errors.base import Refusal

_MODULES = (ours, durable_refusals, schema)

# Every class with a SQLSTATE. Base classes such as InstallationRefused have none.
SQLSTATES: Final[dict[str, type[Refusal]]] = {
    found.sqlstate: found
    for module in _MODULES
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, Refusal) and found.sqlstate
}


def from_sqlstate(
    sqlstate: str | None,
    message: str,
    detail_json: str | None,
    hint: str | None,
    refusals: Mapping[str, type[Refusal]] | None = None,
) -> Refusal | None:
    """Return the refusal for a database error, or None if the error is not Trunkline's.

    Independent of the driver: pass the fields of the driver's error. ``refusals`` are the classes
    by SQLSTATE if they are not the engine's alone.
    """
    found = (SQLSTATES if refusals is None else refusals).get(sqlstate or "")
    if found is None:
        return None
    return found(message, hint=hint, detail=_detail(detail_json))


def _detail(text: str | None) -> dict[str, Any]:
    # A proxy or a log level may have cut the detail. The refusal is still useful without it.
    try:
        detail = json.loads(text or "{}")
    except ValueError:
        return {}
    return detail if isinstance(detail, dict) else {}
