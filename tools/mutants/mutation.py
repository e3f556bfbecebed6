"""A small break of one source file: a span of text and its replacement."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = ["KINDS", "Change", "Mutation", "Span", "numbered"]

Span = tuple[int, int]
# Kind, span, replacement.
Change = tuple[str, Span, str]

KINDS = {
    "condition": "a condition, a guard or a branch dropped",
    "lock": "a lock or its `skip locked` dropped",
    "order": "an order dropped or reversed",
    "wake-up": "a notification dropped",
    "bound": "a limit dropped, a comparison off by one, least and greatest swapped",
    "comparison": "a comparison swapped or negated",
    "result": "a constant result",
    "refusal": "a check or an error dropped",
    "statement": "a statement dropped",
}


@dataclass(frozen=True, slots=True)
class Mutation:
    """Replaces text[start:end] of a file.

    ``before`` and ``after`` are the affected lines with white space collapsed. Together with the
    path and the scope they identify the mutation even if lines above it change.
    """

    path: str
    kind: str
    start: int
    end: int
    replacement: str
    scope: str
    line: int
    before: str
    after: str
    # Distinguishes equal changes of equal lines in one scope.
    nth: int = 1

    @classmethod
    def of(cls, path: str, text: str, scope: str, change: Change) -> Mutation:
        kind, (start, end), replacement = change
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", end)
        last = len(text) if last < 0 else last
        return cls(
            path=path,
            kind=kind,
            start=start,
            end=end,
            replacement=replacement,
            scope=scope,
            line=text.count("\n", 0, start) + 1,
            before=_collapsed(text[first:last]),
            after=_collapsed(text[first:start] + replacement + text[end:last]),
        )

    @property
    def key(self) -> str:
        """A short name that stays the same when other lines of the file change."""
        parts = (self.path, self.scope, self.kind, self.before, self.after, str(self.nth))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]

    def apply(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]


def numbered(mutations: Iterable[Mutation]) -> list[Mutation]:
    """Drop duplicates and changes without an effect; number those that look the same."""
    seen: Counter[tuple[str, str, str, str, str]] = Counter()
    spans: set[tuple[str, int, int, str]] = set()
    kept = []
    for mutation in mutations:
        span = (mutation.path, mutation.start, mutation.end, mutation.replacement)
        if mutation.before == mutation.after or span in spans:
            continue
        spans.add(span)
        look = (mutation.path, mutation.scope, mutation.kind, mutation.before, mutation.after)
        seen[look] += 1
        kept.append(replace(mutation, nth=seen[look]))
    return kept


def _collapsed(text: str) -> str:
    return " ".join(text.split())
