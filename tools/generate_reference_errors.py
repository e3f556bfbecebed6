"""Generates docs/reference/errors/ and exit-codes.md from the tree of exceptions.

It includes the hand-written notes of docs/reference/errors/notes/<code>.md.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from tools.generate_docs import refusals
from tools.generate_reference_messages import Said, said
from tools.markdown import REFERENCE, cell, code, fence, page, table
from trunkline import errors
from trunkline.errors import HTTP_ERRORS, HttpError, TrunklineError

__all__ = ["classes", "generate"]

_FOLDER = REFERENCE / "errors"
_ERRORS = """
Every error of Trunkline is a `TrunklineError` with a message, a `hint` on what to do next
and a stable `code`. The command line prints all three. Refusals of the engine have a SQLSTATE, so
that you can distinguish them in every language. Errors of `ctx.http` are those of httpx2; three
codes distinguish them where they are stored.
"""
_EXITS = """
If the exit code is not 0, the command prints the reason to standard error: a message, a hint and
the [error code](errors/README.md).
"""
# Exit codes of the command line in addition to those of errors.
_OTHER_EXITS = {
    0: "Success, or Ctrl-C ended a command that runs until then (`--watch`, `jobs tail`, `up`).",
    1: "Refused or failed, or a check found a problem (`schema verify`, `doctor`).",
    2: "Wrong usage: an unknown command, a missing or wrong option;",
    130: "Interrupted with Ctrl-C.",
}


def classes() -> list[type[TrunklineError]]:
    """All our exceptions, by code."""
    found = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, TrunklineError)
    }
    return sorted(found, key=lambda one: one.code)


def generate() -> dict[Path, str | None]:
    """Return a page for each code, the index and the exit codes; None for pages without a code."""
    texts = said(classes())
    register = {name: (message, hint) for _, name, message, hint in refusals()}
    for one in classes():
        if one.code in register:
            message, hint = register[one.code]
            texts[one.__name__] = Said([message], [hint])
    pages: dict[Path, str | None] = dict.fromkeys(_FOLDER.glob("*.md"))
    for one in classes():
        pages[_FOLDER / f"{one.code}.md"] = _page(one, texts[one.__name__])
    for known in HTTP_ERRORS:
        pages[_FOLDER / f"{known.code}.md"] = _http_page(known)
    pages[_FOLDER / "README.md"] = _index()
    pages[REFERENCE / "exit-codes.md"] = _exit_codes()
    stray = {path.stem for path in (_FOLDER / "notes").glob("*.md")} - {x.code for x in classes()}
    if stray:
        raise LookupError(f"notes on errors that do not exist: {', '.join(sorted(stray))}")
    return pages


def _page(one: type[TrunklineError], text: Said) -> str:
    facts = [
        ["Python class", code(f"trunkline.errors.{one.__name__}")],
        ["kind of", _parents(one)],
        ["exit code", f"[{one.exit_code}](../exit-codes.md)"],
    ]
    if sqlstate := getattr(one, "sqlstate", ""):
        facts.insert(0, ["SQLSTATE", code(sqlstate)])
    if (retryable := getattr(one, "retryable", None)) is not None:
        facts.append(["passes by itself", "yes, try again later" if retryable else "no"])
    if (status := getattr(one, "http_status", None)) is not None:
        facts.append(["HTTP status", str(status)])
    parts = [table(["", ""], facts)]
    children = sorted(child.code for child in classes() if one in child.__bases__)
    if children:
        links = ", ".join(f"[{code(child)}]({child}.md)" for child in children)
        parts.append(f"An `except` clause for it also catches {links}.")
    if text.messages:
        parts += ["## Message", fence("\n".join(text.messages))]
    hints = list(dict.fromkeys([*text.hints, one.hint] if one.hint else text.hints))
    if hints:
        parts += ["## What to do", *(cell(hint) for hint in hints)]
    note = _FOLDER / "notes" / f"{one.code}.md"
    if note.exists():
        parts.append(note.read_text(encoding="utf-8").strip())
    return page(code(one.code), _sentence(one), *parts)


def _http_page(known: HttpError) -> str:
    """The page of an error of httpx2, which has a code but not our own class."""
    facts = [["Python class", code(f"httpx2.{known.name}")]]
    return page(
        code(known.code),
        known.meaning,
        table(["", ""], facts),
        "An uncaught error of a call with `ctx.http` is stored with this code.",
        "## What to do",
        known.hint,
    )


def _parents(one: type[TrunklineError]) -> str:
    ours = [base for base in one.__mro__[1:] if issubclass(base, TrunklineError)]
    return ", ".join(f"[{code(base.__name__)}]({base.code}.md)" for base in ours) or "`Exception`"


def _sentence(one: type[TrunklineError]) -> str:
    return cell(inspect.getdoc(one) or "").replace("``", "`")


def _index() -> str:
    rows = [
        [
            f"[{code(one.code)}]({one.code}.md)",
            getattr(one, "sqlstate", ""),
            cell((inspect.getdoc(one) or "").partition("\n\n")[0]),
        ]
        for one in classes()
    ]
    rows += [[f"[{code(one.code)}]({one.code}.md)", "", one.meaning] for one in HTTP_ERRORS]
    rows.sort()
    return page("Errors", _ERRORS, table(["code", "SQLSTATE", "meaning"], rows))


def _exit_codes() -> str:
    special: dict[int, list[type[TrunklineError]]] = {}
    for one in classes():
        if one.exit_code != TrunklineError.exit_code:
            special.setdefault(one.exit_code, []).append(one)
    rows = []
    for number in sorted({*special, *_OTHER_EXITS}):
        links = [f"[{code(one.code)}](errors/{one.code}.md)" for one in special.get(number, [])]
        text = [_OTHER_EXITS[number]] if number in _OTHER_EXITS else []
        rows.append([str(number), " ".join([*text, ", ".join(links)]).strip()])
    return page("Exit codes of the command line", _EXITS, table(["code", "meaning"], rows))
