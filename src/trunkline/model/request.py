"""The fields of a request to enqueue a job, as every client sends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trunkline.model.duration import seconds

__all__ = ["REQUEST_FIELDS", "as_request"]

# Generated from the type trunkline_internal.request.
REQUEST_FIELDS: Final = (
    # <job request>
    "task",
    "payload",
    "queue",
    "priority",
    "run_at",
    "delay",
    "tenant",
    "unique_key",
    "idempotency_key",
    "correlation_id",
    "max_attempts",
    "tags",
    "cost",
    "accepted",
    "expires_at",
    # </job>
)


def as_request(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value, in the format of enqueue_many."""
    request = {name: values[name] for name in REQUEST_FIELDS if values.get(name) is not None}
    if "delay" in request:
        request["delay"] = f"{seconds(request['delay']):f} seconds"
    return request
