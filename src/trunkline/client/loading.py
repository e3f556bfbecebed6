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
    if "/" in module_name or module_name.endswith(".py"):
        guess = module_name.removeprefix("./").removesuffix(".py").replace("/", ".")
        raise AppNotFound(
            f"{module_name} is a file, not a module", hint=f"Name it {guess}:{variable or 'app'}."
        )
    here = str(Path.cwd())
    if here not in sys.path:
        # As `python -m` does: a newcomer's app.py lies in the current folder.
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module_name)
    except TrunklineError:
        raise
    except ModuleNotFoundError as error:
        raise _missing(module_name, error) from error
    except (Exception, SystemExit) as error:
        raise AppNotFound(
            f"Importing {module_name} failed: {type(error).__name__}: {error}",
            hint="Run `python -c 'import " + module_name + "'` to see the whole traceback.",
        ) from error
    for name in (variable or "app").split("."):
        if not hasattr(found, name):
            raise AppNotFound(f"Module {module_name} has no {variable or 'app'}")
        found = getattr(found, name)
    if not isinstance(found, Trunkline):
        where = f"{module_name}:{variable or 'app'}"
        raise AppNotFound(f"{where} is {type(found).__name__}, not a Trunkline application")
    return found


def _missing(module_name: str, error: ModuleNotFoundError) -> AppNotFound:
    if error.name and not (module_name == error.name or module_name.startswith(error.name + ".")):
        return AppNotFound(
            f"Module {module_name} imports {error.name}, which is not installed",
            hint=f"Install what brings {error.name} into the environment of this command.",
        )
    return AppNotFound(
        f"There is no module {module_name} in the current folder or among the packages"
    )
