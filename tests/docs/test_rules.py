"""What every page keeps to: known languages, reasons for skips, links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.pages import DOCS, ROOT

_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The anchors of a page, as GitHub makes them from headings."""
    found = set()
    for heading in _HEADING.finditer(pages.prose(text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading["text"])
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
    return found


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere; addresses elsewhere are not tried."""
    found = []
    for link in _LINK.finditer(pages.prose(page.read_text(encoding="utf-8"))):
        path, _, anchor = link["target"].partition("#")
        if "://" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        known = anchors(target.read_text(encoding="utf-8")) if target.is_file() else set()
        if not target.exists() or (anchor and anchor not in known):
            found.append(link["target"])
    return found


def test_every_link_leads_somewhere() -> None:
    found = {pages.name(page): broken(page) for page in pages.pages()}
    assert len(found) > 20
    # Pages of the profiles are in their own distribution and have their own tests.
    profiles = ROOT / "profiles"
    beside = [profiles / "README.md", *sorted((profiles / "docs").glob("*.md"))]
    assert len(beside) > 3
    found |= {page.relative_to(ROOT).as_posix(): broken(page) for page in beside}
    assert {name: links for name, links in found.items() if links} == {}


def test_a_broken_link_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`\n[a](#one-two) [b](#three) [c](other.md) [d](page.md#one-two)\n")
    assert broken(page) == ["#three", "other.md"]


def test_every_page_can_be_reached_from_the_index() -> None:
    reached: set[Path] = set()
    waiting = [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or not page.exists():
            continue
        reached.add(page)
        for link in _LINK.finditer(pages.prose(page.read_text(encoding="utf-8"))):
            path = link["target"].partition("#")[0]
            target = (page.parent / path).resolve()
            if path.endswith(".md") and DOCS in target.parents:
                waiting.append(target)
    assert [pages.name(page) for page in pages.pages() if page not in reached] == []


@pytest.mark.parametrize("page", pages.pages(), ids=pages.name)
def test_every_block_names_its_language(page: Path) -> None:
    known = pages.RUN | pages.FILES | pages.SHOWN
    found = [block for block in pages.blocks(page) if block.language not in known]
    assert [block.place for block in found] == []
    not_written = [
        block.place
        for block in pages.blocks(page)
        if block.language in pages.FILES - pages.RUN and block.file is None
    ]
    assert not_written == [], "a block of this kind is a file: name it in the line before"


def test_skipped_snippets() -> None:
    """Each is a promise nobody keeps: a new one must be seen here."""
    found = [
        f"{pages.name(block.page)}: {block.skip}"
        for page in pages.pages()
        for block in pages.blocks(page)
        if block.skip is not None
    ]
    assert found == []


def test_pages_name_no_machine() -> None:
    for page in pages.pages():
        text = page.read_text(encoding="utf-8")
        assert str(ROOT) not in text, page
        assert f"{Path.home()}/" not in text, page


def test_no_log_line_has_a_number_before_a_fixed_plural() -> None:
    """`trunkline.telemetry.count` writes "1 job" and "2 jobs"."""
    fixed = re.compile(r"%d (?!was)[a-z]+s\b")
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in sorted((ROOT / "src" / "trunkline").rglob("*.py"))
        for match in fixed.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []
