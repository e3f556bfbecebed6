"""The pages of docs/ as the tests see them: blocks of code with what is said about them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

# Run by the tests, each in its own way.
RUN = frozenset({"python", "console", "sql"})
# Written to disk when a line before names a file; otherwise only looked at by a test of its own.
FILES = frozenset({"python", "ini", "sql", "yaml", "dockerfile", "toml"})
# Shown and nothing else.
SHOWN = frozenset({"text", "mermaid"})

_FENCE = re.compile(r"^(?P<marks>```+)(?P<language>\S*)$")
_DIRECTIVE = re.compile(r"^<!-- (?P<name>skip|exit|output)(?:: (?P<value>.+?))? -->$")
_FILE = re.compile(
    r"`(?P<name>(?:[\w-]+/)*(?:Containerfile|[\w-]+\.(?:py|ini|service|sql|toml|yaml)))`:$"
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code and what the lines before it say: a file, a reason to skip, an exit code."""

    page: Path
    line: int
    language: str
    text: str
    file: str | None = None
    directives: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def skip(self) -> str | None:
        return self.directives.get("skip")

    @property
    def runs(self) -> bool:
        return self.language in RUN and self.skip is None


def pages() -> list[Path]:
    """Every page of docs/; notes on errors are parts of pages."""
    notes = DOCS / "reference" / "errors" / "notes"
    return [page for page in sorted(DOCS.rglob("*.md")) if notes not in page.parents]


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def blocks(page: Path, text: str | None = None) -> list[Block]:
    """The blocks of a page in their order."""
    return list(_blocks(page, text if text is not None else page.read_text(encoding="utf-8")))


def prose(text: str) -> str:
    """The text without its blocks, so that a link or a heading in code is not taken for one."""
    return re.sub(r"^(```+)[^\n]*\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)


def _blocks(page: Path, text: str) -> Iterator[Block]:
    lines = iter(enumerate(text.splitlines(), start=1))
    directives: dict[str, str] = {}
    before = ""
    for number, line in lines:
        if directive := _DIRECTIVE.match(line):
            directives[directive["name"]] = directive["value"] or ""
        elif fence := _FENCE.match(line):
            content = []
            for _, inner in lines:
                if inner == fence["marks"]:
                    break
                content.append(inner)
            named = _FILE.search(before)
            file = named["name"] if named and fence["language"] in FILES else None
            body = "\n".join(content) + "\n"
            yield Block(page, number, fence["language"], body, file, directives)
            directives, before = {}, ""
        elif line.strip():
            directives, before = {}, line.rstrip()
