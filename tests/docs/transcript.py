"""Console blocks: what is typed, what is shown, and whether the two belong together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Stands for any text within a line, and on a line of its own for any number of lines.
WILDCARD = "…"


@dataclass(slots=True)
class Command:
    """One command, and the output that the page shows for it; none shown means any."""

    text: str
    shown: list[str] = field(default_factory=list)


def commands(block: str) -> list[Command]:
    """The commands of a block: lines with `$ `, continued with `> `; other lines are output."""
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ ")))
        elif not found:
            raise ValueError(f"a console block begins with a command, not with {line!r}")
        elif line[:2] in {">", "> "} and not found[-1].shown:
            found[-1].text += "\n" + line[2:]
        else:
            found[-1].shown.append(line)
    return found


def agrees(shown: list[str], real: str) -> bool:
    """Whether the output is what the page shows; spaces at the ends of lines do not count."""
    wanted = "\n".join(line.rstrip() for line in shown).strip("\n")
    got = "\n".join(line.rstrip() for line in real.splitlines()).strip("\n")
    lines = [
        r"(?:.*\n)*?" if line.strip() == WILDCARD else _line(line) + r"\n"
        for line in wanted.split("\n")
    ]
    return re.fullmatch("".join(lines), got + "\n" if got else "") is not None


def _line(text: str) -> str:
    return ".*?".join(re.escape(part) for part in text.split(WILDCARD))
