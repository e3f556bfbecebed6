"""Chooses the renderer: Chromium where the host has one, otherwise fpdf2.

TRUNKLINE_EXPORTS_RENDERER names one of chromium and plain, or your own as ``module:factory``, which
is called with the environment. TRUNKLINE_EXPORTS_CHROMIUM is the program.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from trunkline.errors import ProfileError, ProfileNeedsPackages
from trunkline_profiles.exports.handlers.chromium import ChromiumRenderer
from trunkline_profiles.exports.handlers.options import Options
from trunkline_profiles.exports.handlers.plain import PlainRenderer
from trunkline_profiles.exports.handlers.resume import Resume

__all__ = ["Renderer", "find_chromium", "renderer"]

_PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Renderer(Protocol):
    """Sets the pages of a résumé; several threads may call it at once."""

    @property
    def name(self) -> str:
        """Its name, for logs."""
        ...

    def render(self, resume: Resume, options: Options, stopped: Callable[[], bool]) -> bytes:
        """Return a PDF; raise RenderStopped soon after `stopped` returns true."""
        ...

    def close(self) -> None:
        """End what it has started."""
        ...


def find_chromium(environment: Mapping[str, str]) -> str | None:
    """The program of the browser; None if the host has none."""
    named = environment.get("TRUNKLINE_EXPORTS_CHROMIUM")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ProfileError(
                f"TRUNKLINE_EXPORTS_CHROMIUM is {named!r}, which is no program",
                hint="Set it to the path of Chromium, or unset it.",
            )
        return found
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


def renderer(environment: Mapping[str, str]) -> Renderer:
    """The renderer that the environment names, or the best one of this host."""
    for module in ("fpdf", "pypdf"):
        if importlib.util.find_spec(module) is None:
            raise ProfileNeedsPackages(
                f"Exports cannot be rendered: {module} is not installed",
                hint="Install it with: pip install 'trunkline-profiles[exports]'",
            )
    name = environment.get("TRUNKLINE_EXPORTS_RENDERER") or ""
    if ":" in name:
        return _custom(name)(environment)
    if name not in {"", "chromium", "plain"}:
        raise ProfileError(
            f"TRUNKLINE_EXPORTS_RENDERER is {name!r}",
            hint="Set it to chromium, plain, or module:factory.",
        )
    program = None if name == "plain" else find_chromium(environment)
    if program is None and name == "chromium":
        raise ProfileError("This host has no Chromium", hint="Install Debian's package chromium.")
    return PlainRenderer() if program is None else ChromiumRenderer(program)


def _custom(name: str) -> Callable[[Mapping[str, str]], Renderer]:
    module, _, attribute = name.partition(":")
    try:
        make: Callable[[Mapping[str, str]], Renderer] = getattr(
            importlib.import_module(module), attribute
        )
    except (ImportError, AttributeError) as error:
        raise ProfileError(
            f"TRUNKLINE_EXPORTS_RENDERER={name} cannot be imported: {error}",
            hint="Name a function as module:factory.",
        ) from error
    return make
