"""Text that PostgreSQL cannot store: refused where it is data, made storable where it describes."""

import json
from typing import Any

import pytest

from trunkline.db.call import json_text, plain_text
from trunkline.model.codec import encode


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ("", ""),
        ("plain", "plain"),
        ("naïve\n✓", "naïve\n✓"),
        ("a\0b", "a\ufffdb"),
        ("caf\udce9", "caf?"),
    ],
)
def test_descriptive_text_is_cleaned_for_storage(given: str | None, expected: str | None) -> None:
    assert plain_text(given) == expected
    assert json.loads(json_text({"k": [given]})) == {"k": [expected]}


def test_only_what_cannot_be_stored_is_changed() -> None:
    fine = {"a": r"\u0000", "b": "\\", "c": [1, None, True, {"d": "\x01"}]}
    assert json.loads(json_text(fine)) == fine
    assert json.loads(json_text({"a": "\\\0", "\0": 1})) == {"a": "\\\ufffd", "\ufffd": 1}


@pytest.mark.parametrize("value", ["\0", {"\0": 1}, [["a\0"]], "\\\0", "\udce9"])
def test_data_is_refused_rather_than_changed(value: Any) -> None:
    with pytest.raises(TypeError, match=r"NUL|surrogates"):
        encode(value)
