"""A hash of the code that a handler runs: its module and the modules of yours that it imports."""

from __future__ import annotations

import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

__all__ = ["CodeVersions"]

_LENGTH: Final = 16
_OWN: Final = __name__.partition(".")[0]
_STANDARD: Final = Path(sysconfig.get_path("stdlib"))
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


class CodeVersions:
    """Hashes source files, each read once.

    The signature of a handler does not tell which types its durable steps return: their functions
    are arguments of calls within it. So any difference in the code counts. Modules are followed
    through what they name: modules, and objects that another module defines. An import within a
    function is not seen. Of installed packages, only those that define a handler count.
    """

    def __init__(self) -> None:
        self._digests: dict[str, bytes] = {}
        self._named: dict[str, frozenset[str]] = {}
        self._yours: dict[str, bool] = {}

    def of(self, handler: Callable[..., Any]) -> str:
        """Return a short hash, the same in every process that has the same files."""
        while isinstance(handler, partial):
            handler = handler.func
        start = {handler.__module__, inspect.unwrap(handler).__module__}
        packages = {_top(name) for name in start}
        found: set[str] = set()
        following = {name for name in start if name in sys.modules}
        while following:
            found |= following
            named = {name for module in following for name in self._names_of(module)}
            following = {
                name for name in named - found if _top(name) in packages or self._is_yours(name)
            }
        total = hashlib.sha256()
        for name in sorted(found):
            total.update(name.encode() + b"\0" + self._digest(name))
        return total.hexdigest()[:_LENGTH]

    def _names_of(self, name: str) -> frozenset[str]:
        """Return the loaded modules that a module names."""
        if name not in self._named:
            values = list(vars(sys.modules[name]).values())
            named = {other for value in values for other in _modules_of(value)}
            self._named[name] = frozenset(named & sys.modules.keys())
        return self._named[name]

    def _is_yours(self, name: str) -> bool:
        if name not in self._yours:
            self._yours[name] = _is_yours(name)
        return self._yours[name]

    def _digest(self, name: str) -> bytes:
        if name not in self._digests:
            self._digests[name] = hashlib.sha256(_source(sys.modules[name])).digest()
        return self._digests[name]


def _modules_of(value: Any) -> Iterator[str]:
    try:
        if isinstance(value, ModuleType):
            yield value.__name__
            return
        # A decorated function may have the module of its decorator.
        for part in (value, getattr(value, "__wrapped__", None)):
            module = getattr(part, "__module__", None)
            if isinstance(module, str):
                yield module
    except Exception:  # noqa: BLE001 - a proxy may raise anything before it is set up
        return


def _is_yours(name: str) -> bool:
    """Whether a module is part of no installed package and not of the standard library."""
    file = getattr(sys.modules[name], "__file__", None)
    if file is None or _top(name) == _OWN:
        return False
    path = Path(file)
    return not path.is_relative_to(_STANDARD) and _INSTALLED.isdisjoint(path.parts)


def _source(module: ModuleType) -> bytes:
    """Return the content of a module's file, also from an archive; b"" if it has none."""
    file = getattr(module, "__file__", None)
    if file is None:
        return b""
    try:
        loader: Any = module.__spec__.loader if module.__spec__ else None
        read = getattr(loader, "get_data", None)
        content: bytes = Path(file).read_bytes() if read is None else read(file)
    except OSError:
        return b""
    return content


def _top(name: str) -> str:
    return name.partition(".")[0]
