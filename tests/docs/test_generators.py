"""The generators of the reference see what they should, and complain where they cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import generate_reference_errors, generate_reference_python
from tools.generate_docs import inserted
from tools.generate_reference_fields import fields
from tools.generate_reference_messages import said
from tools.generate_reference_sql import generate as generate_sql
from tools.markdown import REFERENCE, fence
from trunkline import sql
from trunkline.errors import DatabaseUnreachable, MigrationChanged, WaitTimeout
from trunkline.model import Job


def test_messages_are_read_from_where_errors_are_raised() -> None:
    found = said([DatabaseUnreachable, MigrationChanged, WaitTimeout])
    assert "The connection string is empty" in found["DatabaseUnreachable"].messages
    assert found["WaitTimeout"].messages == ["Job <job_id> had not ended after <seconds> seconds"]
    # Its values are cut in the source; their names are enough here.
    (message,) = found["MigrationChanged"].messages
    assert "was applied with checksum <applied>" in message


def test_fields_have_the_comment_above_them() -> None:
    class Example:
        first: int = 1
        # Said in
        # two lines.
        second: str
        _hidden: int = 2

    found = [(one.name, one.kind, one.default, one.meaning) for one in fields(Example)]
    assert found == [("first", "int", "1", ""), ("second", "str", "", "Said in two lines.")]
    assert {"id", "state", "payload"} <= {one.name for one in fields(Job)}


def test_every_object_of_the_contract_is_on_the_page() -> None:
    catalog = json.loads(sql.catalog_json())
    page = generate_sql()[REFERENCE / "sql.md"]
    assert page is not None
    functions = [name for name in catalog["function"] if name.startswith("trunkline.")]
    views = [name for name in catalog["view"] if name.startswith("trunkline.")]
    assert len(functions) > 40
    for function in functions:
        assert f"#### `{function.removeprefix('trunkline.').partition('(')[0]}`" in page
    for view in views:
        assert f"### View `{view.removeprefix('trunkline.')}`" in page
    # The code of a duty runs with the rights of the owner, so only the owner adds and removes one.
    parts = [part.partition("`") for part in page.split("#### `")[1:]]
    alone = {name for name, _, text in parts if "the owner only" in text}
    assert alone == {"add_duty", "remove_duty"}


def test_settings_keep_what_is_null_apart() -> None:
    found = {row["name"]: row for row in inserted("settings")}
    assert "minimum" not in found["tenant_claim"]
    assert found["lease"]["minimum"] == "3 seconds"


def test_a_page_of_an_error_that_is_gone_is_to_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate_reference_errors, "_FOLDER", tmp_path)
    (tmp_path / "gone.md").write_text("# `gone`\n")
    pages = generate_reference_errors.generate()
    assert pages[tmp_path / "gone.md"] is None
    assert pages[tmp_path / "unknown_task.md"] is not None
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "gone.md").write_text("never\n")
    with pytest.raises(LookupError, match="gone"):
        generate_reference_errors.generate()


def test_signatures_are_wrapped_and_plain() -> None:
    page = generate_reference_python.generate()[REFERENCE / "python.md"]
    assert page is not None
    assert "class Snooze(delay: timedelta | float | str, reason: str | None = None)" in page
    assert "trunkline.model." not in page
    assert "\nasync def wait(timeout: Duration | None = None) -> R\n" in page


def test_a_block_with_a_fence_in_it_ends_where_it_should() -> None:
    assert fence("a\n```\nb\n") == "````text\na\n```\nb\n````"
