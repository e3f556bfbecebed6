"""Demonstrations of profiles: what one looks like, and the database that it runs on."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from trunkline import schema
from trunkline.errors import ProfileBroken, ProfileError
from trunkline.profiles.installer import install
from trunkline.profiles.profile import Profile

__all__ = ["Account", "Demo", "DemoWithFiles", "demo", "temporary_database", "temporary_site"]


class Account(Protocol):
    """What a demonstration did: a dataclass whose fields are printed with ``--json``."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def balanced(self) -> bool:
        """Whether everything ended as it should; otherwise the exit code is 1."""
        ...


@runtime_checkable
class Demo(Protocol):
    """The module that a profile names as its ``demo``."""

    # Default number of documents.
    DOCUMENTS: int

    def run(self, documents: int, *, say: Callable[[str], None]) -> Any:
        """Run from start to end, report on the way, and return an `Account`."""
        ...

    def lines(self, account: Any) -> Iterator[str]:
        """Return the account as text."""
        ...


@runtime_checkable
class DemoWithFiles(Protocol):
    """A demonstration that makes files, which a person can keep."""

    KEEPS_FILES: bool

    def run(self, documents: int, *, say: Callable[[str], None], keep: Path | None = None) -> Any:
        """Do what `Demo.run` does; copy the files into this folder, which is empty or new."""
        ...


def demo(profile: Profile) -> Demo:
    """Import the demonstration of a profile."""
    if profile.demo is None:
        raise ProfileError(f"Profile {profile.name} has no demonstration")
    try:
        module = importlib.import_module(profile.demo)
    except ImportError as error:
        raise ProfileBroken(
            f"The demonstration of profile {profile.name} cannot be imported: {error}"
        ) from error
    if not isinstance(module, Demo):
        raise ProfileBroken(
            f"{profile.demo}, the demonstration of profile {profile.name}, is incomplete",
            hint="It needs DOCUMENTS, run and lines: see trunkline.profiles.Demo.",
        )
    return module


@contextmanager
def temporary_database(profile: Profile, phases: Iterable[str] = ()) -> Iterator[str]:
    """Start a server in a temporary folder, install the engine and the profile; yield the DSN."""
    from trunkline.embedded import acquire  # noqa: PLC0415 - not importable on Windows

    # A short name, because the path of a Unix socket may not be long.
    with (
        tempfile.TemporaryDirectory(prefix="trunkline-") as folder,
        acquire(Path(folder) / "pg") as server,
    ):
        schema.install(server.dsn)
        install(server.dsn, profile, phases)
        yield server.dsn


@contextmanager
def temporary_site(profile: Profile, phases: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Do what `temporary_database` does, and create a login for the HTTP API.

    Yields the DSN of the installer and that of the login, which takes the roles of its callers.
    """
    import psycopg  # noqa: PLC0415 - profiles are described without the driver

    from trunkline.embedded import acquire  # noqa: PLC0415 - not importable on Windows

    with (
        tempfile.TemporaryDirectory(prefix="trunkline-") as folder,
        acquire(Path(folder) / "pg") as server,
    ):
        with psycopg.connect(server.superuser_dsn, autocommit=True) as superuser:
            superuser.execute(b"create role trunkline_api login noinherit")
            user = superuser.info.user
        schema.install(server.dsn, authenticators=["trunkline_api"])
        install(server.dsn, profile, phases)
        yield server.dsn, server.superuser_dsn.replace(f"//{user}@", "//trunkline_api@")
