"""The mark of the database that a store belongs to."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from trunkline.artifacts.store import Store
from trunkline.errors import StoreError

__all__ = ["MARKER", "adopt", "owner_of"]

# Not hidden: a bucket's listing shows it to the person who looks.
MARKER: Final = "trunkline-store.txt"
_TEXT: Final = "Files of Trunkline. The database that deletes unknown files here:\n{}\n"


def owner_of(store: Store, installation: UUID) -> UUID:
    """Return the database that a store belongs to. A store without a mark becomes this one's."""
    if store.create(MARKER, _TEXT.format(installation).encode()):
        return installation
    text = b"".join(store.read(MARKER)).decode(errors="replace")
    try:
        return UUID(text.split()[-1])
    except (ValueError, IndexError) as error:
        raise StoreError(
            f"The mark of the store cannot be read: {MARKER}",
            hint="Run `trunkline store adopt` with the database that the store belongs to.",
        ) from error


def adopt(store: Store, installation: UUID) -> None:
    """Mark a store as belonging to this database, whatever mark it has."""
    store.put(
        MARKER, [_TEXT.format(installation).encode()], content_type="text/plain; charset=utf-8"
    )
