"""The backup file: written whole or not at all, and read only if it is undamaged."""

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backup.target import a_manifest
from trunkline.backup.archive import Archive, draft
from trunkline.errors import BackupError, BackupFileExists, BackupUnreadable

_DATA = b"dump" * 1000


def _write(target: Path, *, force: bool = False, data: bytes = _DATA) -> int:
    with draft(target, force=force) as writing:
        writing.manifest(a_manifest(owners=("b", "a")))
        return writing.dump(io.BytesIO(data))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    target = tmp_path / "backup"
    assert _write(target) == len(_DATA)
    return target


def test_a_backup_is_private_and_is_read_as_it_was_written(file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    with Archive(file) as archive:
        assert list(archive.manifest.owners) == ["b", "a"]
        assert archive.manifest.rows == {"a.t": 3}
        assert archive.dump().read() == _DATA
    with tarfile.open(file) as tar:
        assert tar.getnames() == ["manifest.json", "database.dump", "sha256"]
        assert {member.mode for member in tar} == {0o600}
    assert [path.name for path in file.parent.iterdir()] == ["backup"]


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, (1 << 20) + 1])
def test_a_dump_of_any_size_is_kept(tmp_path: Path, size: int) -> None:
    target = tmp_path / "backup"
    assert _write(target, data=b"x" * size) == size
    with Archive(target) as archive:
        assert len(archive.dump().read()) == size


def test_an_existing_file_is_replaced_only_by_force(file: Path) -> None:
    with pytest.raises(BackupFileExists, match=r"backup exists$"):
        _write(file, data=b"new")
    _write(file, force=True, data=b"new")
    with Archive(file) as archive:
        assert archive.dump().read() == b"new"
    _write(file.parent / "other", force=True)
    assert sorted(path.name for path in file.parent.iterdir()) == ["backup", "other"]


def test_a_name_that_is_taken_meanwhile_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "backup"

    def write() -> None:
        with draft(target, force=False) as writing:
            writing.manifest(a_manifest())
            writing.dump(io.BytesIO(_DATA))
            target.write_text("theirs")

    with pytest.raises(BackupFileExists):
        write()
    assert target.read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["backup"]


def test_a_file_system_without_links_gets_a_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: Any, **__: Any) -> None:
        raise PermissionError("no links")

    monkeypatch.setattr(os, "link", no_links)
    _write(tmp_path / "backup")
    with Archive(tmp_path / "backup") as archive:
        assert archive.dump().read() == _DATA
    assert [path.name for path in tmp_path.iterdir()] == ["backup"]


def test_an_error_leaves_no_file_and_no_open_folder(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))

    def fail() -> None:
        with draft(tmp_path / "backup", force=False):
            raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    with pytest.raises(BackupError) as refused:
        _write(tmp_path / "missing" / "backup")
    assert str(refused.value).endswith("cannot be written: No such file or directory")
    assert refused.value.hint == "Choose another folder."


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
@pytest.mark.parametrize(
    ("owner", "mode", "problem"),
    [
        (65534, 0o700, "belongs to user id 65534"),
        (0, 0o777, "is writable by other users (mode 0777)"),
        (0, 0o1777, None),
        (0, 0o755, None),
    ],
)
def test_root_writes_only_where_nobody_could_replace_it(
    tmp_path: Path, owner: int, mode: int, problem: str | None
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(mode)
    os.chown(folder, owner, owner)
    if problem is None:
        _write(folder / "backup")
        return
    with pytest.raises(BackupError) as refused:
        _write(folder / "backup")
    assert str(refused.value) == (
        f"Root cannot write a backup where another user could replace it: {folder} {problem}"
    )
    assert refused.value.hint.startswith("Choose a folder that belongs to root")


def _with(file: Path, **changes: bytes | None) -> None:
    """Replace members of a backup, or leave them out."""
    with tarfile.open(file) as tar:
        members = {}
        for name in tar.getnames():
            stream = tar.extractfile(name)
            assert stream is not None
            members[name] = stream.read()
    with tarfile.open(file, "w") as tar:
        for name, content in (members | changes).items():
            if content is not None:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"manifest.json": None}, "{} has no readable manifest.json"),
        ({"manifest.json": b"no json"}, "{}: manifest.json is damaged"),
        ({"manifest.json": b"\xff"}, "{}: manifest.json is damaged"),
        ({"manifest.json": b"{}"}, "{}: manifest.json is damaged"),
        ({"manifest.json": b'{"format": 1}'}, "{}: manifest.json is damaged"),
        ({"manifest.json": b'{"format": 2}'}, "{} has format 2; this package reads 1"),
        ({"database.dump": None}, "{} has no readable database.dump"),
        ({"database.dump": b"other"}, "{}: database.dump is damaged, its checksum differs"),
        ({"sha256": None}, "{} has no readable sha256"),
        ({"sha256": b""}, "{}: database.dump is damaged, its checksum differs"),
        ({"sha256": b"\xff"}, "{}: sha256 is damaged"),
    ],
)
def test_a_damaged_backup_is_refused(
    file: Path, changes: dict[str, bytes | None], message: str
) -> None:
    _with(file, **changes)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(BackupUnreadable) as refused:
        Archive(file)
    assert str(refused.value) == message.format(file)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_what_is_no_backup_is_refused(file: Path) -> None:
    whole = file.read_bytes()
    for damaged in (b"", b"nonsense" * 200):
        file.write_bytes(damaged)
        with pytest.raises(BackupUnreadable, match=r"cannot be read: "):
            Archive(file)
    file.write_bytes(whole[:2048])
    with pytest.raises(BackupUnreadable):
        Archive(file)
    with pytest.raises(BackupUnreadable):
        Archive(file.parent / "missing")
    assert json.loads(whole[512:].split(b"\0", 1)[0])["format"] == 1
