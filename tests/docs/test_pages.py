"""Every snippet of the documentation is run, in order, as its reader would."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.running import Session

# A reader of the tutorial installs the package first: test_tutorial.py. One of the page on backups
# has a database without schemas of the tests' own: test_backup.py. A profile is a package to build
# and install: test_own_profile.py.
_APART = {"tutorial.md", "how-to/backup.md", "how-to/profiles.md"}
_WITH_CODE = [
    page
    for page in pages.pages()
    if pages.name(page) not in _APART and any(block.runs for block in pages.blocks(page))
]


@pytest.mark.parametrize("page", _WITH_CODE, ids=pages.name)
def test_the_snippets_of_a_page_work(page: Path, reader: Session) -> None:
    ran = 0
    for block in pages.blocks(page):
        reader.do(block)
        ran += block.runs
    assert ran > 0


def test_pages_with_code_are_found() -> None:
    found = {pages.name(page) for page in _WITH_CODE}
    assert {"how-to/transactions.md", "how-to/retries.md", "how-to/testing.md"} <= found
