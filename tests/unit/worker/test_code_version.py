"""Which changes of an application's files change the hash of a handler's code."""

import functools
import importlib
import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trunkline.worker.code_version import CodeVersions

_NUMBERS = itertools.count()

HANDLERS = """
import functools
{imports}

def handler() -> None:
    {body}
"""
PAGES = """
def look() -> {kind}: ...
"""


class Application:
    """A folder of modules with names that no other test uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        number = next(_NUMBERS)
        self.shop, self.pages, self.types = (f"{name}_{number}" for name in ("shop", "pages", "ty"))

    def write(self, name: str, text: str) -> None:
        path = self.folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def load(self) -> Callable[..., Any]:
        for name in (self.shop, self.pages, self.types):
            for loaded in [each for each in sys.modules if each.partition(".")[0] == name]:
                del sys.modules[loaded]
        importlib.invalidate_caches()
        handler: Callable[..., Any] = importlib.import_module(self.shop).handler
        return handler

    def version(self) -> str:
        return CodeVersions().of(self.load())


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Application:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Application(tmp_path)


def handlers(application: Application, imports: str = "", body: str = "pass") -> None:
    names = {"pages": application.pages, "types": application.types}
    text = HANDLERS.format(imports=imports, body=body)
    for name, own in names.items():
        text = text.replace(f"<{name}>", own)
    application.write(application.shop, text)


@pytest.mark.parametrize(
    "imports",
    [
        "import <pages>",
        "import <pages> as p",
        "from <pages> import look",
        "from <pages> import look as _look\nlook = functools.partial(_look)\n",
        "from <pages> import look as _look\n\n@functools.wraps(_look)\ndef look(): ...\n",
        "import <types>",
    ],
)
def test_the_hash_changes_with_a_module_that_the_handler_reaches(
    application: Application, imports: str
) -> None:
    handlers(application, imports)
    application.write(application.types, f"from {application.pages} import look\n")
    application.write(application.pages, PAGES.format(kind="int"))
    before = application.version()
    assert application.version() == before
    application.write(application.pages, PAGES.format(kind="str"))
    assert application.version() != before


def test_the_hash_changes_with_the_module_of_the_handler(application: Application) -> None:
    handlers(application)
    before = application.version()
    handlers(application, body="...")
    assert application.version() != before


def test_other_modules_and_imports_within_functions_do_not_count(application: Application) -> None:
    handlers(application, body="import <pages>")
    application.write(application.pages, PAGES.format(kind="int"))
    before = application.version()
    application.write(application.pages, PAGES.format(kind="str"))
    handler = application.load()
    importlib.import_module(application.pages)
    assert CodeVersions().of(handler) == before


def test_an_installed_package_counts_only_if_it_defines_the_handler(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.folder /= "site-packages"
    monkeypatch.syspath_prepend(str(application.folder))
    handlers(application, "from <pages> import look")
    application.write(application.pages, PAGES.format(kind="int"))
    before = application.version()
    application.write(application.pages, PAGES.format(kind="str"))
    assert application.version() == before
    # Of its own package, all modules that it reaches count.
    for name in ("", ".steps"):
        application.write(f"{application.types}{name or '.__init__'}", "def look() -> int: ...\n")
    application.write(
        f"{application.types}.tasks", "from .steps import look\ndef handler() -> None: ...\n"
    )
    application.write(application.shop, f"from {application.types}.tasks import handler\n")
    before = application.version()
    application.write(f"{application.types}.steps", "def look() -> str: ...\n")
    assert application.version() != before


def test_a_decorated_handler_counts_with_the_module_that_defines_it(
    application: Application,
) -> None:
    application.write(
        application.types,
        "def plain(f):\n    def run(): return f()\n    run.__wrapped__ = f\n    return run\n",
    )
    application.write(application.pages, "def job() -> None: ...\n")
    application.write(
        application.shop,
        f"from {application.types} import plain\nimport {application.pages}\n"
        f"handler = plain({application.pages}.job)\n",
    )
    before = application.version()
    assert CodeVersions().of(functools.partial(application.load())) == before
    application.write(application.pages, "def job() -> None:\n    pass\n")
    assert application.version() != before


def test_a_proxy_that_raises_and_a_module_without_a_file_do_no_harm(
    application: Application,
) -> None:
    handlers(
        application,
        "import sys\nclass Proxy:\n    def __getattribute__(self, name): raise RuntimeError(name)\n"
        "proxy = Proxy()\n",
    )
    handler = application.load()
    before = CodeVersions().of(handler)
    sys.modules[application.shop].__file__ = None
    assert CodeVersions().of(handler) != before


def test_each_process_computes_the_same_hash() -> None:
    script = (
        "from trunkline.demo.tasks import app\n"
        "from trunkline.worker.code_version import CodeVersions\n"
        "print(*sorted(CodeVersions().of(task.handler) for task in app.tasks.values()))\n"
    )
    hashes = [
        subprocess.run(
            [sys.executable, "-c", more + script], capture_output=True, text=True, check=True
        ).stdout
        for more in ("", "import psycopg, json, trunkline.cli.main\n")
    ]
    assert hashes[0] == hashes[1] != ""
