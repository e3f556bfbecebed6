"""The folder of an embedded server without a server: locks, small files, the log, paths."""

import fcntl
import hashlib
import os
import re
import tempfile
from pathlib import Path

import pytest

from trunkline.embedded.folder import Folder, default_home
from trunkline.errors import EmbeddedFolderUnsafe


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "home")
    made.create()
    return made


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_folder_comes_from_the_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", "/a/b")
    monkeypatch.setenv("XDG_DATA_HOME", "/x")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_home() == Path("/a/b")
    monkeypatch.delenv("TRUNKLINE_HOME")
    assert default_home() == Path("/x/trunkline")
    monkeypatch.setenv("XDG_DATA_HOME", "")
    assert default_home() == tmp_path / ".local/share/trunkline"
    assert Folder(Path("~/f")).home == tmp_path / "f"


def test_a_folder_is_private_and_has_its_paths(folder: Folder) -> None:
    assert folder.home.stat().st_mode & 0o777 == 0o700
    assert folder.data == folder.home / "data"
    assert folder.log == folder.home / "postgres.log"
    folder.create()
    folder.home.chmod(0o770)
    with pytest.raises(EmbeddedFolderUnsafe) as refused:
        folder.create()
    assert str(refused.value) == f"{folder.home} is writable by other users (mode 0770)"
    assert refused.value.hint == f"Make it private: chmod go-w {folder.home}"


def test_small_files_are_read_as_they_were_written(folder: Folder) -> None:
    assert (folder.port, folder.password, folder.pinned) == (None, None, False)
    folder.port = 5433
    assert folder.port == 5433
    password = folder.new_password()
    assert folder.password == password
    assert len(password) > 20
    assert folder.new_password() != password
    folder.pinned = True
    assert folder.pinned
    # Of another boot.
    (folder.home / "pinned").write_text("another")
    assert not folder.pinned
    folder.pinned = False  # type: ignore[unreachable]
    folder.pinned = False
    assert not (folder.home / "pinned").exists()
    for text in ("", "x", "5433 "):
        (folder.home / "port").write_text(text)
        assert folder.port == (5433 if text.strip().isdigit() else None)
    (folder.home / "password").write_text("\n")
    assert folder.password is None
    (folder.home / "password").chmod(0o644)
    with pytest.raises(EmbeddedFolderUnsafe, match=r"is open to other users \(mode 0644\)"):
        assert folder.password


def test_without_data_there_is_no_version_and_no_server(folder: Folder) -> None:
    assert not folder.has_data
    assert folder.data_version is None
    assert folder.postmaster is None
    folder.drop_stale_pid()
    assert folder.account == os.geteuid()
    with folder.open_data() as data:
        assert data is None
    missing = Folder(folder.home / "missing")
    assert not missing.has_data
    assert missing.port is None
    assert missing.log_size() == 0
    assert missing.log_tail(0) == ""


def test_the_data_folder_has_its_version_and_its_recorded_process(folder: Folder) -> None:
    folder.data.mkdir(mode=0o700)
    assert folder.has_data
    assert folder.data_version is None
    (folder.data / "PG_VERSION").write_text("18\n")
    assert folder.data_version == "18"
    record = folder.data / "postmaster.pid"  # type: ignore[unreachable]
    # This process is no server, and nobody has the other numbers.
    for text in ("", "x\n", "-1\n", "٣\n"):
        record.write_text(text)
        assert folder.postmaster is None
        folder.drop_stale_pid()
        assert record.exists()
    record.write_text(f"{os.getpid()}\nmore\n")
    assert folder.postmaster is None
    folder.drop_stale_pid()
    assert not record.exists()


def test_one_at_a_time_starts_or_stops(folder: Folder) -> None:
    before = _descriptors()
    with folder.start_lock():
        other = os.open(folder.home / "start.lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)
    assert _descriptors() == before


def test_users_are_counted_by_their_locks(folder: Folder) -> None:
    before = _descriptors()
    assert not folder.has_users()
    first, second = folder.join(), folder.join()
    assert folder.has_users()
    assert folder.leave(first) is False
    assert folder.has_users()
    assert folder.leave(second) is True
    assert not folder.has_users()
    assert _descriptors() == before


def test_the_server_lock_is_taken_once(folder: Folder) -> None:
    before = _descriptors()
    lock = folder.server_lock(0.0)
    assert lock is not None
    assert folder.server_lock(-1.0) is None
    os.close(lock)
    again = folder.server_lock(0.0)
    assert again is not None
    os.close(again)
    assert _descriptors() == before


def test_the_log_is_read_from_an_offset_and_bounded(folder: Folder) -> None:
    assert folder.log_size() == 0
    assert folder.log_tail(0) == ""
    before = _descriptors()
    log = folder.open_log()
    os.write(log, b"first ")
    os.write(log, "grün".encode())
    os.close(log)
    assert folder.log_size() == 11
    assert folder.log_tail(0) == "first grün"
    assert folder.log_tail(6) == "grün"
    folder.log.write_text("a" * 3000 + "b" * 1999)
    assert folder.log_tail(0) == "a" + "b" * 1999
    # Only as many bytes are read as may be needed.
    folder.log.write_bytes(b"\xff" * 9000)
    assert folder.log_tail(0) == "\ufffd" * 2000
    assert _descriptors() == before


def test_a_log_longer_than_the_limit_is_rotated(folder: Folder) -> None:
    old = folder.home / "postgres.log.old"
    folder.log.write_text("12345")
    folder.log.chmod(0o600)
    folder.rotate_log(5)
    assert not old.exists()
    folder.rotate_log(4)
    assert old.read_text() == "12345"
    assert not folder.log.exists()


def test_data_is_moved_aside_under_a_name_with_the_time(folder: Folder) -> None:
    folder.data.mkdir()
    (folder.data / "x").write_text("kept")
    aside = folder.move_data_aside()
    assert aside.parent == folder.home
    assert re.fullmatch(r"data-\d{8}-\d{6}", aside.name)
    assert (aside / "x").read_text() == "kept"
    assert not folder.has_data


def test_a_socket_path_that_would_be_too_long_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")  # noqa: S108
    # With "/run/.s.PGSQL.65535.lock" 103 bytes are the most.
    longest = 103 - len("/run/.s.PGSQL.65535.lock")
    root = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        fits = root / ("x" * (longest - len(str(root)) - 1))
        folder = Folder(fits)
        folder.create()
        assert folder.socket_directory == fits / "run"
        long = Folder(Path(f"{fits}y"))
        long.create()
        digest = hashlib.sha256(os.fsencode(long.home)).hexdigest()[:12]
        name = f"trunkline-{os.geteuid()}-{digest}"
        assert long.socket_directory == Path("/tmp") / name  # noqa: S108
        monkeypatch.setattr(tempfile, "tempdir", "/" + "t" * 90)
        assert long.socket_directory == Path("/tmp") / name  # noqa: S108
    finally:
        for path in sorted(root.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        root.rmdir()


def test_the_directory_of_the_socket_is_private(folder: Folder, tmp_path: Path) -> None:
    folder.secure_socket_directory(os.geteuid())
    folder.secure_socket_directory(os.geteuid())
    run = folder.home / "run"
    if folder.socket_directory == run:
        run.chmod(0o755)
        folder.secure_socket_directory(os.geteuid())
        assert run.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
def test_the_directory_of_the_socket_belongs_to_the_user_of_the_server(folder: Folder) -> None:
    folder.secure_socket_directory(65534)
    assert folder.socket_directory.stat().st_uid == 65534
    folder.secure_socket_directory(65534)
    with pytest.raises(EmbeddedFolderUnsafe) as refused:
        folder.secure_socket_directory(os.geteuid())
    assert str(refused.value) == f"{folder.socket_directory} is not a directory of user id 0"
    folder.data.mkdir()
    os.chown(folder.data, 65534, 65534)
    assert folder.account == 65534
