"""From `module:variable` to the application it names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from trunkline.client.application import Trunkline
from trunkline.errors import AppNotFound, TrunklineError

__all__ = ["load"]


def load(path: str) -> Trunkline:
    """Import the module and return its application; `module` alone means its variable app."""
    module_name, _, variable = path.partition(":")
    if not module_name:
        raise AppNotFound(f"{path!r} names no module")
    here = str(Path.cwd())
    if here not in sys.path:
        # As `python -m` does: a newcomer's app.py lies in the current folder.
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module_name)
    except TrunklineError:
        raise
    except ModuleNotFoundError as error:
        raise AppNotFound(_missing(module_name, error)) from error
    except Exception as error:
        raise AppNotFound(
            f"Importing {module_name} failed: {type(error).__name__}: {error}",
            hint="Run `python -c 'import " + module_name + "'` to see the whole traceback.",
        ) from error
    for name in (variable or "app").split("."):
        if not hasattr(found, name):
            raise AppNotFound(f"Module {module_name} has no {variable or 'app'}")
        found = getattr(found, name)
    if not isinstance(found, Trunkline):
        raise AppNotFound(f"{path} is {type(found).__name__}, not a Trunkline application")
    return found


def _missing(module_name: str, error: ModuleNotFoundError) -> str:
    if error.name and not (module_name == error.name or module_name.startswith(error.name + ".")):
        return f"Module {module_name} imports {error.name}, which is not installed"
    return f"There is no module {module_name} in the current folder or among the packages"
