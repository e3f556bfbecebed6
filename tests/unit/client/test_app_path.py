"""From `module:variable` to an application, or a sentence that says what is wrong."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trunkline import Trunkline
from trunkline.client import load
from trunkline.errors import AppNotFound, DuplicateTask

MODULES = {
    "shop": "from trunkline import Trunkline\napp = Trunkline()\nother = Trunkline()\nnumber = 5\n",
    "nested": (
        "from trunkline import Trunkline\n\nclass Settings:\n    app = Trunkline()\n\n"
        "settings = Settings()\n"
    ),
    "needs_more": "import a_package_nobody_has\n",
    "crashes": "1 / 0\n",
    "exits": "def f(:\n",
    "twice": (
        "from trunkline import Trunkline\napp = Trunkline()\n\n@app.task\ndef a() -> None: ...\n\n"
        "@app.task(name='a')\ndef b() -> None: ...\n"
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with modules that are forgotten afterwards."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("path", ["shop:app", "shop", "shop:other", "nested:settings.app"])
def test_an_application_is_found_in_the_current_folder(path: str) -> None:
    assert isinstance(load(path), Trunkline)


def test_the_variable_is_app_unless_named() -> None:
    assert load("shop") is load("shop:app")
    assert load("shop:other") is not load("shop")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("", "does not name a module"),
        (":app", "does not name a module"),
        ("shopp:app", "There is no module shopp"),
        ("shop:ap", "Module shop has no ap"),
        ("nested", "Module nested has no app"),
        ("shop:number", "shop:number is int, not a Trunkline application"),
        ("needs_more:app", "needs_more imports a_package_nobody_has, which is not installed"),
        ("crashes:app", "Importing crashes failed: ZeroDivisionError"),
        ("exits:app", "Importing exits failed: SyntaxError"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused_with_the_place_where_it_ends(
    path: str, sentence: str
) -> None:
    with pytest.raises(AppNotFound, match=sentence) as caught:
        load(path)
    assert caught.value.code == "app_not_found"
    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_a_mistake_in_the_application_is_raised_unchanged() -> None:
    with pytest.raises(DuplicateTask):
        load("twice:app")
