"""The address of a store: a folder or a bucket, from TRUNKLINE_STORE or `Trunkline(store=…)`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from trunkline.artifacts.local import LocalStore
from trunkline.artifacts.objects import ObjectStore
from trunkline.artifacts.store import Capabilities, Store
from trunkline.errors import StoreAddressInvalid, StoreNotConfigured

__all__ = ["configured_address", "open_store"]

VARIABLE: Final = "TRUNKLINE_STORE"
LINK_VARIABLE: Final = "TRUNKLINE_LINK_URL"
_BUCKETS: Final = frozenset({"s3", "gs", "az"})
_SWITCHES: Final = ("ranges", "conditional_create", "signed_uploads")


def configured_address() -> str | None:
    """Return the address in TRUNKLINE_STORE."""
    return os.environ.get(VARIABLE) or None


def open_store(address: str | os.PathLike[str] | Store | None = None) -> Store:
    """Open the store at an address: a folder, file:///folder, s3://…, gs://… or az://….

    Without an address it uses TRUNKLINE_STORE. What a bucket's server lacks is stated in the
    address, for example `s3://files?ranges=no&conditional_create=no`. TRUNKLINE_LINK_URL is the URL
    under which your server answers links to a folder.
    """
    if address is None:
        address = configured_address()
    if address is None:
        raise StoreNotConfigured("No store is configured")
    if isinstance(address, os.PathLike):
        return _folder(Path(address))
    if not isinstance(address, str):
        return address
    parts = urlsplit(address)
    if parts.scheme in _BUCKETS and parts.netloc:
        if parts.password is not None:
            raise StoreAddressInvalid(
                "The address of a store has a password",
                hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead.",
            )
        plain = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        return ObjectStore(plain, capabilities=_capabilities(address, parts.query))
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path.strip("/"):
        return _folder(Path(unquote(parts.path)))
    if not parts.scheme and Path(address).is_absolute():
        return _folder(Path(address))
    raise StoreAddressInvalid(f"{address!r} is not the address of a store")


def _folder(path: Path) -> LocalStore:
    return LocalStore(path, link_base=os.environ.get(LINK_VARIABLE) or "/files")


def _capabilities(address: str, query: str) -> Capabilities:
    given = parse_qs(query, keep_blank_values=True)
    if given.keys() - set(_SWITCHES) or any(
        value not in (["yes"], ["no"]) for value in given.values()
    ):
        raise StoreAddressInvalid(
            f"{address!r} has an unknown option",
            hint="The options are " + ", ".join(_SWITCHES) + ", each yes or no.",
        )
    return Capabilities(**{name: value == ["yes"] for name, value in given.items()})
