"""Loads the application that a path such as `module:variable` names."""

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
        raise AppNotFound(f"{path!r} does not name a module")
    if "/" in module_name or module_name.endswith(".py"):
        guess = module_name.removeprefix("./").removesuffix(".py").replace("/", ".")
        raise AppNotFound(
            f"{module_name} is a file, not a module", hint=f"Name it {guess}:{variable or 'app'}."
        )
    here = str(Path.cwd())
    if here not in sys.path:
        # `python -m` does the same. A new user's app.py is in the current folder.
        sys.path.insert(0, here)
    try:
        value: object = importlib.import_module(module_name)
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
        if not hasattr(value, name):
            raise AppNotFound(f"Module {module_name} has no {variable or 'app'}")
        value = getattr(value, name)
    if not isinstance(value, Trunkline):
        app_path = f"{module_name}:{variable or 'app'}"
        raise AppNotFound(f"{app_path} is {type(value).__name__}, not a Trunkline application")
    return value


def _missing(module_name: str, error: ModuleNotFoundError) -> AppNotFound:
    if error.name and not (module_name == error.name or module_name.startswith(error.name + ".")):
        return AppNotFound(
            f"Module {module_name} imports {error.name}, which is not installed",
            hint=f"Install the package that provides {error.name} in the environment of this"
            " command.",
        )
    return AppNotFound(
        f"There is no module {module_name} in the current folder or among the packages"
    )
