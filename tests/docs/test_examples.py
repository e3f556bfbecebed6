"""Every example is a program that runs, and the first of them is short enough for the README."""

from __future__ import annotations

from pathlib import Path

from tests.docs.pages import ROOT, Block
from tests.docs.running import Session

EXAMPLES = ROOT / "examples"


def typed(reader: Session, text: str) -> None:
    reader.do(Block(Path("examples"), 0, "console", text))


def test_the_quickstart(reader: Session) -> None:
    source = (EXAMPLES / "quickstart.py").read_text(encoding="utf-8")
    (reader.folder / "quickstart.py").write_text(source, encoding="utf-8")
    typed(
        reader,
        "$ trunkline worker quickstart:app > worker.log 2>&1 &\n"
        "$ python quickstart.py\n"
        "receipt for order 1 sent to ann@example.com\n"
        "$ python quickstart.py\n"
        "receipt for order 1 sent to ann@example.com\n",
    )
    assert len(source.splitlines()) < 40
