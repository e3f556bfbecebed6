"""Providers by name: their addresses, and the keys that only workers have."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Provider", "missing", "providers"]

_URL: Final = re.compile(r"TRUNKLINE_CLINICAL_URL_([A-Z0-9_]+)")


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider; its key is never logged."""

    url: str
    key: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}

    def address(self, path: str) -> str:
        return f"{self.url.rstrip('/')}/{path}"


def missing() -> str | None:
    """Return what must be installed to call providers from here; does not import it."""
    return "httpx2" if importlib.util.find_spec("httpx2") is None else None


def providers(environment: Mapping[str, str]) -> dict[str, Provider]:
    """From TRUNKLINE_CLINICAL_URL_OPENAI and TRUNKLINE_CLINICAL_KEY_OPENAI, and so on."""
    providers = {}
    for variable, url in environment.items():
        match = _URL.fullmatch(variable)
        if match and url:
            name = match[1].lower().replace("_", "-")
            key = environment.get(f"TRUNKLINE_CLINICAL_KEY_{match[1]}") or None
            providers[name] = Provider(url, key)
    return providers
