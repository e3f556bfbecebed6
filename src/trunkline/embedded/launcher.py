"""Chooses the account that runs the PostgreSQL programs, which refuse to run as root.

An ordinary user runs them under its own account. Root runs them in a user namespace, where its own
files belong to the unprivileged id 65534, so that nothing has to be created or chowned. If the
kernel or a container forbids that, root gives the data to an existing account and drops to it. Data
that already belongs to another account is always run under that account.
"""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trunkline.embedded.directory import Directory, primary_group
from trunkline.embedded.folder import Folder
from trunkline.errors import EmbeddedPlatform

__all__ = ["Launcher", "choose"]

_NAMESPACE = ("unshare", "--user", "--map-user=65534", "--map-group=65534", "--")
_ACCOUNTS = ("postgres", "nobody")
_NEEDED = ("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")


@dataclass(frozen=True, slots=True)
class Launcher:
    """Runs programs as the account uid:gid, optionally with a prefix command."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()

    @property
    def drops(self) -> bool:
        """Whether root drops its privileges to become this account."""
        return self.uid != os.geteuid() and not self.prefix

    def run(
        self,
        arguments: Sequence[str | Path],
        *,
        log: int | None = None,
        inherit: Sequence[int] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end.

        Pass a log for output that the server inherits: a pipe would stay open in the server. Only
        the file descriptors in ``inherit`` are passed on.
        """
        drop = self.drops
        return subprocess.run(
            [*self.prefix, *(str(argument) for argument in arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if log is None else log,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            pass_fds=inherit,
            cwd="/",
            env=_environment(foreign=drop),
            # Ctrl-C in this terminal must not stop a server that other processes use.
            start_new_session=True,
            umask=0o077,
            user=self.uid if drop else None,
            group=self.gid if drop else None,
            extra_groups=[] if drop else None,
        )


def choose(folder: Folder, postgres: Path) -> Launcher:
    """Return the launcher for the server of this folder; raise EmbeddedPlatform if none works."""
    if os.geteuid() != 0:
        return Launcher(os.geteuid(), os.getegid())
    owner = folder.account
    if owner != 0:
        launcher = Launcher(owner, primary_group(owner))
        _require(launcher, folder, postgres)
        return launcher
    namespace = Launcher(0, 0, _NAMESPACE)
    if _works(namespace, [postgres, "--version"]):
        return namespace
    return _drop(folder, postgres)


def _drop(folder: Folder, postgres: Path) -> Launcher:
    for name in _ACCOUNTS:
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        launcher = Launcher(account.pw_uid, account.pw_gid)
        # The account must be able to pass through the folder. Every file in it stays private.
        with folder.open() as home:
            os.fchmod(home.descriptor, 0o711)
            if _works(launcher, [postgres, "--version"]) and _passes(launcher, folder.home):
                _give(home, folder.data.name, launcher)
                return launcher
            os.fchmod(home.descriptor, 0o700)
    raise EmbeddedPlatform(
        "PostgreSQL does not run as root, user namespaces are not allowed here, and none of the "
        f"accounts {', '.join(_ACCOUNTS)} can reach both {postgres} and {folder.home}",
        hint=(
            "Run as an ordinary user, or set TRUNKLINE_HOME to a folder that other accounts can "
            "reach (and install into such a folder), or set TRUNKLINE_DSN to use your own server."
        ),
    )


def _give(home: Directory, name: str, launcher: Launcher) -> None:
    """Give a private directory to the account, from the bottom up.

    The directory itself changes owner last. Until then the account cannot reach its contents, and
    so cannot replace any of them.
    """
    if not home.exists(name):
        return
    tree = os.fwalk(name, topdown=False, follow_symlinks=False, dir_fd=home.descriptor)
    for _, folders, files, descriptor in tree:
        for entry in (*folders, *files):
            os.chown(entry, launcher.uid, launcher.gid, dir_fd=descriptor, follow_symlinks=False)
    with home.enter(name) as directory:
        os.fchown(directory.descriptor, launcher.uid, launcher.gid)


def _require(launcher: Launcher, folder: Folder, postgres: Path) -> None:
    if not _works(launcher, [postgres, "--version"]) or not _passes(launcher, folder.home):
        raise EmbeddedPlatform(
            f"The data belongs to user id {launcher.uid}, which cannot reach {postgres} or "
            f"{folder.home}"
        )


def _passes(launcher: Launcher, path: Path) -> bool:
    return _works(launcher, ["/bin/sh", "-c", 'test -x "$0"', path])


def _works(launcher: Launcher, arguments: Sequence[str | Path]) -> bool:
    try:
        return launcher.run(arguments).returncode == 0
    except OSError:
        return False


def _environment(*, foreign: bool) -> dict[str, str]:
    """Drop libpq's and PostgreSQL's own variables, which would override our settings.

    A process of another account gets only the variables it needs, because that account can read
    its environment.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PG", "LC_")) and (not foreign or name in _NEEDED)
    }
    # English messages, because we search the log for temporary failures.
    return kept | {"LC_ALL": "C"}
