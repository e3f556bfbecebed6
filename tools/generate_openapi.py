"""Writes docs/reference/openapi.json from the routes of the HTTP API."""

from __future__ import annotations

import json
from pathlib import Path

from tools.markdown import REFERENCE
from trunkline.http.openapi import openapi
from trunkline.http.v1 import ROUTES

__all__ = ["generate"]


def generate() -> dict[Path, str | None]:
    """Return the document without routes of profiles."""
    operations = [operation for room in ROUTES for operation in room.operations]
    text = json.dumps(openapi(operations), indent=1, ensure_ascii=False)
    return {REFERENCE / "openapi.json": text + "\n"}
