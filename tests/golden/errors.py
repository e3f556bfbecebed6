"""Errors as lines: codes, SQLSTATEs, classes and what programs see of them."""

from __future__ import annotations

from collections.abc import Iterator

from tools.generate_docs import refusals
from tools.generate_reference_errors import classes
from trunkline.errors import HTTP_ERRORS, TrunklineError

__all__ = ["lines"]


def lines() -> Iterator[str]:
    """Yield every exception, then every refusal of the engine's register."""
    for error in classes():
        parents = [base.__name__ for base in error.__bases__ if issubclass(base, TrunklineError)]
        yield f"error {error.code}: class {error.__name__}"
        for parent in parents:
            yield f"error {error.code}: is a {parent}"
        yield f"error {error.code}: exit code {error.exit_code}"
        for name in ("sqlstate", "retryable", "http_status"):
            if (value := getattr(error, name, "")) != "":
                yield f"error {error.code}: {name} {value}"
    for known in HTTP_ERRORS:
        yield f"error {known.code}: class httpx2.{known.name}"
    for sqlstate, name, _message, _hint in sorted(refusals()):
        yield f"refusal {sqlstate}: {name}"
