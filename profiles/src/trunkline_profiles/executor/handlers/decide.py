"""Decides from the existing evidence what a document needs next, without any service."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from trunkline_profiles.executor.handlers.evidence import BUNDLE, RECORD, STAMP, anchor_in

__all__ = ["next_steps"]

# The evidence that each of the slow types produces.
_MISSING: Final = {
    "run_tsa": STAMP,
    "submit_anchor_polygon": anchor_in("polygon"),
    "submit_anchor_bitcoin": anchor_in("bitcoin"),
}


def next_steps(evidence: AbstractSet[str]) -> tuple[str, ...]:
    """The types to run now; none if the proof exists or the document is unknown."""
    if RECORD not in evidence or BUNDLE in evidence:
        return ()
    missing = tuple(kind for kind, name in _MISSING.items() if name not in evidence)
    return missing or ("build_artifact",)
