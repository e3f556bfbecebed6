"""Chooses the adapters for text, PDF and speech by configuration.

TRUNKLINE_STUDIO_TEXT, _PDF and _SPEECH each name a built-in adapter (model, typst, espeak) or your
own as ``module:factory``. The factory is called with the environment.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trunkline.errors import ProfileError
from trunkline_profiles.studio.handlers.pdf import Renderer, TypstRenderer
from trunkline_profiles.studio.handlers.speech import EspeakSpeaker, Speaker
from trunkline_profiles.studio.handlers.text import ModelWriter, Writer

__all__ = ["Adapters", "adapters"]

Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Adapters:
    """The adapters of a worker; those that it lacks are None, with the reason."""

    writer: Writer | None = None
    renderer: Renderer | None = None
    speaker: Speaker | None = None
    missing: Mapping[str, str] = field(default_factory=dict)


def adapters(environment: Environment) -> Adapters:
    """The adapters that the environment names."""
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for part, (variable, default) in _PARTS.items():
        name = environment.get(variable) or default
        builtin = _BUILTIN[part].get(name)
        reason = None if builtin is None else builtin.missing(environment)
        if reason is None:
            make = _custom(variable, name) if builtin is None else builtin.make
            found[part] = make(environment)
        else:
            missing[part] = reason
    return Adapters(**found, missing=missing)


@dataclass(frozen=True, slots=True)
class _Builtin:
    make: Callable[[Environment], Any]
    modules: tuple[str, ...]
    variables: tuple[str, ...] = ()

    def missing(self, environment: Environment) -> str | None:
        """What it lacks on this host; imports nothing."""
        for module in self.modules:
            if importlib.util.find_spec(module) is None:
                return f"not installed: {module}, see pip install 'trunkline-profiles[studio]'"
        for variable in self.variables:
            if not environment.get(variable):
                return f"{variable} is not set"
        return None


def _custom(variable: str, name: str) -> Callable[[Environment], Any]:
    module, _, attribute = name.partition(":")
    if not attribute:
        raise ProfileError(
            f"{variable} is {name!r}", hint="Name a built-in adapter, or yours as module:factory."
        )
    try:
        make: Callable[[Environment], Any] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ProfileError(f"{variable}={name} cannot be imported: {error}") from error
    return make


def _model(environment: Environment) -> ModelWriter:
    return ModelWriter(
        url=environment["TRUNKLINE_STUDIO_MODEL_URL"],
        model=environment.get("TRUNKLINE_STUDIO_MODEL") or "gpt-4o-mini",
        secret=environment.get("TRUNKLINE_STUDIO_MODEL_KEY") or None,
        timeout=float(environment.get("TRUNKLINE_STUDIO_MODEL_TIMEOUT") or 60),
    )


_PARTS: Final = {
    "writer": ("TRUNKLINE_STUDIO_TEXT", "model"),
    "renderer": ("TRUNKLINE_STUDIO_PDF", "typst"),
    "speaker": ("TRUNKLINE_STUDIO_SPEECH", "espeak"),
}
_BUILTIN: Final[Mapping[str, Mapping[str, _Builtin]]] = {
    "writer": {"model": _Builtin(_model, ("httpx2",), ("TRUNKLINE_STUDIO_MODEL_URL",))},
    "renderer": {"typst": _Builtin(lambda _: TypstRenderer(), ("typst",))},
    "speaker": {
        "espeak": _Builtin(
            lambda given: EspeakSpeaker(given.get("TRUNKLINE_STUDIO_VOICE") or "en-us"),
            ("espeakng_loader", "lameenc"),
        )
    },
}
