"""Secrets that sign links to a local store. They live outside the database, two at a time."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from trunkline.errors import InvalidVariable, StoreDenied

__all__ = ["LinkSecrets"]

_VARIABLE: Final = "TRUNKLINE_LINK_SECRETS"
_SHORTEST: Final = 16


class LinkSecrets:
    """The secret that signs, and the one before it, whose links are still accepted.

    Read from TRUNKLINE_LINK_SECRETS, newest first and separated by a comma; otherwise from a file
    of the store, which is created at the first link.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def signing(self) -> tuple[str, bytes]:
        """Return name and secret that sign new links."""
        active = self.active()
        if not active:
            self._create()
            active = self.active()
        return next(iter(active.items()))

    def active(self) -> dict[str, bytes]:
        """Return the secrets whose links are accepted, by name, newest first."""
        if value := os.environ.get(_VARIABLE):
            texts = [text.strip() for text in value.split(",")]
            if len(texts) > 2 or min(map(len, texts)) < _SHORTEST:
                raise InvalidVariable(
                    f"{_VARIABLE} must have one or two secrets of at least {_SHORTEST} characters",
                    hint="Newest first, separated by a comma. Create one: openssl rand -hex 32",
                )
        else:
            try:
                texts = self._file.read_text("ascii").split()
            except FileNotFoundError:
                return {}
            except OSError as error:
                raise StoreDenied(
                    f"The secrets of links cannot be read: {self._file}: {error.strerror}",
                    hint=f"Run as the owner of the store, or set {_VARIABLE}.",
                ) from error
        return {_name(text): text.encode() for text in texts[:2]}

    def rotate(self) -> None:
        """Sign new links with a new secret. Links of the last one stay valid."""
        if os.environ.get(_VARIABLE):
            raise InvalidVariable(
                f"The secrets come from {_VARIABLE}",
                hint="Put a new secret first there, keep the one before it, and restart.",
            )
        previous = [secret.decode() for secret in self.active().values()][:1]
        self._write([secrets.token_hex(32), *previous], replace=True)

    def _create(self) -> None:
        self._write([secrets.token_hex(32)], replace=False)

    def _write(self, texts: list[str], *, replace: bool) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self._file.with_name(f"{self._file.name}.{secrets.token_hex(8)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write("\n".join(texts) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(self._file)
            return
        # Another process may create the first secret at the same moment. One of them wins.
        with suppress(FileExistsError):
            self._file.hardlink_to(draft)
        draft.unlink()


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
