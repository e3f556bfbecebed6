"""Words that programs compare with: settings, states, event kinds, reasons, codes.

Where the list comes from:

- settings, duties: the views of those names on an installed database;
- transitions: the rows that the package installs, as docs/reference/states.md shows them;
- event kinds, reasons of dead letters and of deferrals, codes of explain, verdicts and so on:
  observed. `Story` moves jobs by public functions through every situation, and what the views and
  answers then hold is the list, with the keys of each `detail`. A word that the story does not
  reach is not listed, so a new word needs a new situation;
- an id that collides with a running one cannot be produced by public functions. Its two words are
  looked for as literals in the bodies of the installed functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg

from tests.golden.shapes import sorted_shape
from tests.golden.story import Story
from tools.generate_docs import transitions

__all__ = ["told", "written"]

_SETTINGS = "select name, kind, default_value, minimum, maximum from trunkline.settings"
_DUTIES = "select duty, every::text from trunkline.duties"
_EVENTS = "select kind, to_state, detail from trunkline.events"
_DEAD = "select distinct reason from trunkline.dead_letters"
_COLLISION = (("event", "collided"), ("reason of a dead letter", "id_collision"))
_LITERAL = """
select exists (
  select from pg_proc as p
  where p.pronamespace in (select n.oid from pg_namespace as n where n.nspname ~ '^trunkline')
    and strpos(p.prosrc, quote_literal(%s)) > 0
)
"""


def written(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Yield states, transitions, settings and duties."""
    changes = transitions()
    yield from sorted(f"state {state}" for state in {s for row in changes for s in row[:2]})
    yield from sorted(f"transition {one} -> {other} by {by}" for one, other, by in changes)
    for row in sorted(connection.execute(_SETTINGS).fetchall()):
        name, kind, default, minimum, maximum = row
        bounds = f", {minimum} to {maximum}" if minimum is not None else ""
        yield f"setting {name}: {kind}, default {default!r}{bounds}"
    for duty, every in sorted(connection.execute(_DUTIES).fetchall()):
        yield f"duty {duty}: every {every}"


def told(story: Story) -> Iterator[str]:
    """Yield what was observed in a story that has been played."""
    read = story.operator.connection.execute
    for kind, to_state, detail in read(_EVENTS.encode()).fetchall():
        story.tell("event", kind, detail)
        story.tell(f"event {kind} to state", to_state or "none")
        reason = (detail or {}).get("reason")
        # The reasons of these are the words of the caller.
        if kind not in {"cancelled", "cancel_requested", "discarded"}:
            story.tell(f"reason of event {kind} to state {to_state}", reason)
    for (reason,) in read(_DEAD.encode()).fetchall():
        story.tell("reason of a dead letter", reason)
    for kind, word in _COLLISION:
        if story.operator.value(_LITERAL, word):
            story.tell(kind, word)
    for kind, words in sorted(story.told.items()):
        for word, details in sorted(words.items()):
            yield f"{kind}: {word}"
            yield from _details(f"{kind}: {word}", details)


def _details(start: str, details: Iterable[Any]) -> Iterator[str]:
    for line in sorted_shape(detail for detail in details if detail is not None):
        yield f"{start}, detail {line}"
