"""Tries every operation of a store."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from trunkline.artifacts.store import CHUNK, Store
from trunkline.errors import StoreError

__all__ = ["StoreCheck", "check_store"]

_CONTENT: Final = bytes(range(256)) * 64


class StoreCheck(NamedTuple):
    """One operation, and what came of it."""

    check: str
    ok: bool
    message: str


def check_store(store: Store) -> Iterator[StoreCheck]:
    """Yield a result for each operation. Files that it writes are deleted at the end."""
    path = f"trunkline-check/{secrets.token_hex(8)}"
    steps: list[tuple[str, Callable[[], str]]] = [
        ("write", lambda: _write(store, path)),
        ("write in parts", lambda: _write_parts(store, f"{path}-parts")),
        ("read", lambda: _read(store, path)),
        ("read a range", lambda: _read_range(store, path)),
        ("list", lambda: _list(store, path)),
        ("create once", lambda: _create(store, f"{path}-once")),
        ("sign a link", lambda: _sign(store, path)),
        ("delete", lambda: _delete(store, path)),
    ]
    for name, step in steps:
        try:
            yield StoreCheck(name, True, step())
        except StoreError as error:
            yield StoreCheck(name, False, f"{error} ({error.code}). {error.hint}")


def _write(store: Store, path: str) -> str:
    written = store.put(path, [_CONTENT], content_type="application/octet-stream")
    return f"{written.bytes} bytes"


def _write_parts(store: Store, path: str) -> str:
    written = store.put(path, (bytes(CHUNK) for _ in range(9)))
    if store.head(path).bytes != written.bytes:
        raise StoreError(f"{path} has another size than what was written")
    return f"{written.bytes} bytes"


def _read(store: Store, path: str) -> str:
    if b"".join(store.read(path)) != _CONTENT:
        raise StoreError(f"{path} has another content than what was written")
    return "equal"


def _read_range(store: Store, path: str) -> str:
    if b"".join(store.read(path, 1000, 1010)) != _CONTENT[1000:1010]:
        raise StoreError(f"A range of {path} is not what was written")
    return "equal" if store.capabilities.ranges else "equal, but the whole file is transferred"


def _list(store: Store, path: str) -> str:
    if [file.path for file in store.list(path)] != [path, f"{path}-parts"]:
        raise StoreError("The list does not have the files that were written")
    return "complete"


def _create(store: Store, path: str) -> str:
    if not store.create(path, b"first"):
        raise StoreError(f"{path} could not be created")
    if store.create(path, b"second"):
        raise StoreError(
            "The store overwrites a file that must be created once",
            hint="Add ?conditional_create=no to its address.",
        )
    return "yes" if store.capabilities.conditional_create else "by looking first"


def _sign(store: Store, path: str) -> str:
    store.sign(path, expires_in=60)
    return "signed"


def _delete(store: Store, path: str) -> str:
    names = [path, f"{path}-parts", f"{path}-once"]
    store.delete(names)
    if left := [file.path for file in store.list(path)]:
        raise StoreError(f"{', '.join(left)} were not deleted")
    return "done"
