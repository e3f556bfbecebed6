"""As whom the PostgreSQL programs run, since they refuse to run as root.

An ordinary user runs them as itself. Root runs them in a user namespace, where its own files
belong to the unprivileged id 65534: nothing is created or chowned. Where the kernel or a container
forbids that, root drops to an existing account, to which the data is given. Data that already
belongs to another account is always run as that account.
"""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trunkline.embedded.folder import Folder
from trunkline.errors import EmbeddedPlatform

__all__ = ["Launcher", "choose"]

_NAMESPACE = ("unshare", "--user", "--map-user=65534", "--map-group=65534", "--")
_ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Launcher:
    """Runs programs as the account uid:gid, possibly behind a prefix command."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()

    def run(
        self,
        arguments: Sequence[str | Path],
        *,
        log: Path | None = None,
        inherit: Sequence[int] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end. With a log, output goes there: a pipe would stay open in the server.

        Of our open files only those in ``inherit`` are passed on.
        """
        command = [*self.prefix, *(str(argument) for argument in arguments)]
        drop = self.uid != os.geteuid() and not self.prefix
        output = subprocess.PIPE
        if log is not None:
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                pass_fds=inherit,
                cwd="/",
                env=_environment(),
                # A Ctrl-C at our terminal must not stop a server that others use.
                start_new_session=True,
                umask=0o077,
                user=self.uid if drop else None,
                group=self.gid if drop else None,
                extra_groups=[] if drop else None,
            )
        finally:
            if output >= 0:
                os.close(output)

    def own(self, path: Path) -> None:
        """Give a path to the account if root drops to it."""
        if self.uid != os.geteuid():
            os.chown(path, self.uid, self.gid)


def choose(folder: Folder, postgres: Path) -> Launcher:
    """Decide as whom the server of this folder runs; raise where no way works."""
    if os.geteuid() != 0:
        return Launcher(os.geteuid(), os.getegid())
    place = folder.data if folder.data.exists() else folder.home
    owner = place.stat()
    if owner.st_uid != 0:
        launcher = Launcher(owner.st_uid, owner.st_gid)
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
        # The account must pass through our folder; every file in it stays private.
        folder.home.chmod(0o711)
        if _works(launcher, [postgres, "--version"]) and _passes(launcher, folder.home):
            if folder.data.exists():
                for path in (folder.data, *folder.data.rglob("*")):
                    os.chown(path, launcher.uid, launcher.gid, follow_symlinks=False)
            return launcher
        folder.home.chmod(0o700)
    raise EmbeddedPlatform(
        "PostgreSQL does not run as root; user namespaces are not allowed here, and none of the "
        f"accounts {', '.join(_ACCOUNTS)} can reach both {postgres} and {folder.home}",
        hint=(
            "Run as an ordinary user, or set TRUNKLINE_HOME to a folder that other accounts can "
            "reach (and install into such a folder), or set TRUNKLINE_DSN to use a server of your "
            "own."
        ),
    )


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


def _environment() -> dict[str, str]:
    """Drop libpq's and PostgreSQL's own variables, which would override our settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    # English messages, since the log is read to tell a passing failure from a lasting one.
    return kept | {"LC_ALL": "C"}
