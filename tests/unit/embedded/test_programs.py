"""Which programs are run, as whom, with which settings; and who is taken for a server."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trunkline.embedded import binaries, cluster, launcher, postmaster
from trunkline.embedded.binaries import Binaries
from trunkline.embedded.folder import Folder
from trunkline.embedded.launcher import Launcher
from trunkline.errors import EmbeddedBinariesMissing, EmbeddedDataVersion, EmbeddedPlatform

_DATA = Path("/nowhere/data")


def _programs(folder: Path, version: str, *, without: str = "") -> Path:
    folder.mkdir(parents=True)
    for name in {"initdb", "pg_ctl", "postgres"} - {without}:
        (folder / name).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Debian's folders with three versions, and no wheel."""
    monkeypatch.delenv("TRUNKLINE_PG_BINDIR", raising=False)
    monkeypatch.setattr(binaries, "_CARRIERS", (("no_such_package", ("bin",)),))
    system = tmp_path / "system"
    monkeypatch.setattr(binaries, "_SYSTEM", system)
    for major in (9, 17, 16):
        _programs(system / str(major) / "bin", f"{major}.2 (Debian)")
    (system / "common").mkdir()
    return system


def test_the_newest_programs_are_used_for_new_data(installed: Path) -> None:
    found = binaries.find(_DATA, None)
    assert found == Binaries(installed / "17" / "bin", 17)
    assert found.program("psql") == installed / "17" / "bin" / "psql"


def test_data_gets_programs_of_its_version_or_is_refused(installed: Path) -> None:
    assert binaries.find(_DATA, "16").major == 16
    assert binaries.find(_DATA, "9.6").major == 9
    with pytest.raises(EmbeddedDataVersion) as refused:
        binaries.find(_DATA, "15")
    assert "15" in str(refused.value)
    assert "9, 16, 17" in f"{refused.value} {refused.value.hint}"


def test_a_given_folder_is_used_or_refused(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = _programs(tmp_path / "given", "18beta1")
    assert binaries.find(_DATA, None, given) == Binaries(given, 18)
    monkeypatch.setenv("TRUNKLINE_PG_BINDIR", str(given))
    assert binaries.find(_DATA, None).directory == given
    assert list(binaries.folders()) == [
        given,
        *(installed / str(major) / "bin" for major in (17, 16, 9)),
    ]
    half = _programs(tmp_path / "half", "18.1", without="pg_ctl")
    with pytest.raises(EmbeddedBinariesMissing) as refused:
        binaries.find(_DATA, None, half)
    assert str(half) in str(refused.value)
    assert "package" not in str(refused.value)


def test_without_programs_all_places_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: Path
) -> None:
    monkeypatch.setattr(binaries, "_SYSTEM", tmp_path / "none")
    with pytest.raises(EmbeddedBinariesMissing) as refused:
        binaries.find(_DATA, "18")
    assert "package no_such_package" in str(refused.value)
    assert f"{tmp_path / 'none'}/*/bin" in str(refused.value)


def test_a_wheel_comes_before_the_system(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "wheels" / "carrier"
    _programs(package / "b", "14.0")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setattr(binaries, "_CARRIERS", (("carrier", ("a", "b")),))
    assert binaries.find(_DATA, None) == Binaries(package / "b", 14)
    # Not what the system has, if the data fits that.
    assert binaries.find(_DATA, "16").directory == installed / "16" / "bin"


def test_programs_that_do_not_print_their_version_have_none(installed: Path) -> None:
    odd = _programs(installed / "99" / "bin", "unknown")
    assert binaries.find(_DATA, None) == Binaries(odd, 0)


def _shown(run: "subprocess.CompletedProcess[str]") -> dict[str, str]:
    return dict(line.split("=", 1) for line in run.stdout.splitlines() if "=" in line)


def test_programs_run_without_variables_of_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "LC_MESSAGES", "OWN", "TZ"):
        monkeypatch.setenv(name, "x")
    ours = Launcher(os.geteuid(), os.getegid())
    assert not ours.drops
    run = ours.run(["/bin/sh", "-c", "env; umask; pwd; exit 3"])
    assert run.returncode == 3
    found = _shown(run)
    assert (found.get("OWN"), found.get("TZ"), found["LC_ALL"]) == ("x", "x", "C")
    assert not {"PGHOST", "LC_MESSAGES"} & found.keys()
    assert run.stdout.splitlines()[-2:] == ["0077", "/"]


def test_a_program_inherits_only_what_it_is_given(tmp_path: Path) -> None:
    ours = Launcher(os.geteuid(), os.getegid())
    log = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    run = ours.run(["/bin/sh", "-c", "ls /proc/$$/fd; echo bad >&2"], log=log, inherit=[writer])
    written: str | None = run.stdout
    assert not written
    said = (tmp_path / "log").read_text().split()
    assert str(writer) in said
    assert str(reader) not in said
    assert said[-1] == "bad"
    for descriptor in (log, reader, writer):
        os.close(descriptor)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
def test_root_drops_its_groups_and_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN", "x")
    other = Launcher(65534, 65534)
    assert other.drops
    assert not Launcher(65534, 65534, ("env",)).drops
    run = other.run(["/bin/sh", "-c", "env; id -u; id -g; id -G"])
    found = _shown(run)
    assert "OWN" not in found
    assert "PATH" in found
    assert run.stdout.split()[-3:] == ["65534"] * 3


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "home")
    made.create()
    return made


class Accounts:
    """Which launchers work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # Who cannot run which program.
        self.refused: set[tuple[int, str]] = set()
        self.error: OSError | None = None
        accounts = self

        def run(self: Launcher, arguments: Any, **_: Any) -> Any:
            if accounts.error is not None:
                raise accounts.error
            refused = (self.uid, str(arguments[0])) in accounts.refused
            return subprocess.CompletedProcess([], int(refused), "")

        monkeypatch.setattr(Launcher, "run", run)


def test_an_ordinary_user_runs_the_server_itself(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid, gid = os.geteuid(), os.getegid()
    monkeypatch.setattr(os, "geteuid", lambda: uid or 1000)
    assert launcher.choose(folder, Path("/p")) == Launcher(uid or 1000, gid)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
def test_root_prefers_a_namespace_then_an_account(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = Accounts(monkeypatch)
    chosen = launcher.choose(folder, Path("/p"))
    assert (chosen.uid, chosen.gid, chosen.prefix[0]) == (0, 0, "unshare")
    assert not folder.has_data
    accounts.refused.add((0, "/p"))
    monkeypatch.setattr(launcher, "_ACCOUNTS", ("no_such_account", "nobody"))
    folder.data.mkdir()
    (folder.data / "base").mkdir()
    (folder.data / "base" / "1").touch()
    assert launcher.choose(folder, Path("/p")) == Launcher(65534, 65534)
    assert folder.home.stat().st_mode & 0o777 == 0o711
    for path in (folder.data, folder.data / "base", folder.data / "base" / "1"):
        assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)
    assert folder.home.stat().st_uid == 0
    # From now on the data decides.
    assert launcher.choose(folder, Path("/p")) == Launcher(65534, 65534)
    for program in ("/p", "/bin/sh"):
        accounts.refused = {(65534, program)}
        with pytest.raises(EmbeddedPlatform) as refused:
            launcher.choose(folder, Path("/p"))
        assert str(refused.value) == (
            f"The data belongs to user id 65534, which cannot reach /p or {folder.home}"
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
@pytest.mark.parametrize("program", ["/p", "/bin/sh", "error"])
def test_root_is_refused_where_no_account_works(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    accounts = Accounts(monkeypatch)
    accounts.refused = {(0, "/p"), (65534, program)}
    if program == "error":
        accounts.error = PermissionError("no")
    monkeypatch.setattr(launcher, "_ACCOUNTS", ("nobody",))
    with pytest.raises(EmbeddedPlatform) as refused:
        launcher.choose(folder, Path("/p"))
    assert str(refused.value) == (
        "PostgreSQL does not run as root, user namespaces are not allowed here, and none of the"
        f" accounts nobody can reach both /p and {folder.home}"
    )
    assert folder.home.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def child(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that names a folder on its command line and ends at SIGINT."""
    script = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); print(1, flush=True);"
    process = subprocess.Popen(
        [sys.executable, "-c", script + "signal.pause()", str(tmp_path)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_server_is_a_process_of_the_owner_that_names_the_data(
    child: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    uid = os.geteuid()
    assert postmaster.runs(child.pid, tmp_path, uid) is True
    assert postmaster.runs(child.pid, tmp_path / "other", uid) is False
    assert postmaster.runs(child.pid, tmp_path, uid + 1) is False
    assert postmaster.is_other_program(child.pid) is True
    child.kill()
    child.wait()
    assert postmaster.runs(child.pid, tmp_path, uid) is False
    assert postmaster.is_other_program(child.pid) is False


def test_a_program_named_postgres_is_no_other_one(tmp_path: Path) -> None:
    program = tmp_path / "postgres"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([program, "600"])
    try:
        assert postmaster.is_other_program(process.pid) is False
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("listed", "runs", "other"),
    [
        ("  7 /usr/bin/postgres -D /d\n", True, False),
        ("7 /usr/bin/postgres -D /e\n", False, False),
        ("8 /usr/bin/postgres -D /d\n", False, False),
        ("7 /usr/bin/vi /d\n", False, True),
        ("", False, False),
    ],
)
def test_a_process_is_listed_where_there_is_no_proc(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listed: str, runs: bool, other: bool
) -> None:
    monkeypatch.setattr(postmaster, "_PROC", tmp_path)
    answer = subprocess.CompletedProcess([], 0, listed)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: answer)
    assert postmaster.runs(5, Path("/d"), 7) is runs
    assert postmaster.is_other_program(5) is other


def test_only_the_process_that_is_meant_is_interrupted(child: "subprocess.Popen[bytes]") -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    postmaster.interrupt(child.pid, lambda: False)
    assert child.poll() is None
    postmaster.interrupt(child.pid, lambda: True)
    assert child.wait(60) == -signal.SIGINT
    postmaster.interrupt(child.pid, lambda: pytest.fail("there is no such process"))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_process_that_ends_meanwhile_is_no_error(child: "subprocess.Popen[bytes]") -> None:
    def ended() -> bool:
        child.kill()
        child.wait()
        return True

    postmaster.interrupt(child.pid, ended)


def test_settings_are_written_sorted_and_quoted(folder: Folder) -> None:
    folder.data.mkdir(mode=0o700)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        folder.port = port
        cluster._configure(folder, {"work_mem": "1MB", "log_line_prefix": "a'b\\c"})  # noqa: SLF001
        assert folder.port not in {None, port}
    found = folder.port
    cluster._configure(folder, {"max_connections": "7"})  # noqa: SLF001
    # The port of the last start, as it is free.
    assert folder.port == found
    lines = (folder.data / "trunkline.conf").read_text().splitlines()
    assert lines[0].startswith("# Rewritten at every start")
    names = [line.split(" = ")[0] for line in lines[1:]]
    assert names == sorted(names)
    assert "max_connections = '7'" in lines
    assert f"port = '{found}'" in lines
    assert f"unix_socket_directories = '{folder.socket_directory}'" in lines
    cluster._configure(folder, {"log_line_prefix": "a'b\\c"})  # noqa: SLF001
    assert "log_line_prefix = 'a''b\\\\c'" in (folder.data / "trunkline.conf").read_text()


def test_leftovers_of_an_earlier_attempt_are_removed(folder: Folder) -> None:
    with folder.open() as home:
        cluster._remove(home, "draft")  # noqa: SLF001
        (folder.home / "draft" / "x").mkdir(parents=True)
        cluster._remove(home, "draft")  # noqa: SLF001
        assert not home.exists("draft")
        target = folder.home / "target"
        target.mkdir()
        (folder.home / "draft").symlink_to(target)
        cluster._remove(home, "draft")  # noqa: SLF001
        assert not home.exists("draft")
        assert target.exists()


def test_without_a_port_nothing_accepts(folder: Folder) -> None:
    assert cluster.accepts(folder) is False
    folder.port = 1
    assert cluster.accepts(folder) is False
    assert cluster.peer(folder) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
def test_the_account_of_foreign_data_must_be_the_peer(folder: Folder) -> None:
    folder.data.mkdir()
    os.chown(folder.data, 65534, 65534)
    assert cluster.peer(folder) == "nobody"
