"""Files of a folder that another user may control are opened without following anything."""

import os
import stat
from pathlib import Path

import pytest

from trunkline.embedded.directory import (
    Directory,
    open_directory,
    open_home,
    primary_group,
)
from trunkline.embedded.folder import Folder
from trunkline.errors import EmbeddedFolderUnsafe, EmbeddedPlatform

_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return path


def _opened(home: Path) -> Directory:
    return Directory(os.open(home, os.O_RDONLY | os.O_DIRECTORY), home)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_files_are_private_and_replaced_in_one_step(home: Path) -> None:
    before = _descriptors()
    with _opened(home) as directory:
        assert directory.read("a") is None
        assert not directory.exists("a")
        directory.replace("a", "one")
        assert directory.exists("a")
        assert stat.S_IMODE((home / "a").stat().st_mode) == 0o600
        directory.replace("a", "grün")
        assert directory.read("a") == "grün"
        directory.append("a", "!")
        assert directory.read("a", private=True) == "grün!"
        directory.rename("a", "b")
        directory.remove("b")
        directory.remove("b")
        with pytest.raises(FileNotFoundError):
            directory.open("b", os.O_RDONLY)
        with pytest.raises(FileNotFoundError):
            directory.append("b", "x")
        os.close(directory.open("b", os.O_RDWR, create=True))
        descriptor = directory.open("b", os.O_RDONLY)
        assert os.get_blocking(descriptor)
        os.close(descriptor)
    assert sorted(path.name for path in home.iterdir()) == ["b"]
    assert _descriptors() == before


def test_a_replacement_that_fails_leaves_nothing(home: Path) -> None:
    (home / "a").mkdir()
    with _opened(home) as directory, pytest.raises(IsADirectoryError):
        directory.replace("a", "x")
    assert [path.name for path in home.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("link", "is a symbolic link"),
        ("dangling", "is a symbolic link"),
        ("fifo", "is not a regular file"),
        ("directory", "is not a regular file"),
        ("open", "is open to other users (mode 0620)"),
    ],
)
def test_what_is_no_private_file_is_refused(home: Path, kind: str, problem: str) -> None:
    place = home / "a b"
    target = home / "target"
    if kind == "link":
        target.touch()
    match kind:
        case "link" | "dangling":
            place.symlink_to(target)
        case "fifo":
            os.mkfifo(place, 0o600)
        case "directory":
            place.mkdir()
        case _:
            place.touch()
            place.chmod(0o620)
    before = _descriptors()
    with _opened(home) as directory:
        for flags in (os.O_RDONLY, os.O_WRONLY):
            with pytest.raises(EmbeddedFolderUnsafe) as refused:
                directory.open("a b", flags, create=True)
            assert str(refused.value) == f"{place} {problem}"
            hint = f"Find out which user created it, then run: rm '{place}'"
            assert refused.value.hint == hint
    assert _descriptors() == before
    assert target.exists() is (kind == "link")


def test_a_file_that_others_may_read_is_refused_only_if_it_is_private(home: Path) -> None:
    (home / "a").write_text("x")
    (home / "a").chmod(0o604)
    with _opened(home) as directory:
        assert directory.read("a") == "x"
        with pytest.raises(EmbeddedFolderUnsafe, match=r"is open to other users \(mode 0604\)"):
            directory.read("a", private=True)
    # Our own file may have other names.
    (home / "a").chmod(0o600)
    os.link(home / "a", home / "b")
    with _opened(home) as directory:
        assert directory.read("a") == "x"


@pytest.mark.parametrize("mode", [0o720, 0o702])
def test_a_directory_that_others_may_write_to_is_refused(home: Path, mode: int) -> None:
    home.chmod(mode)
    with _opened(home) as directory, pytest.raises(EmbeddedFolderUnsafe) as refused:
        directory.require_private()
    assert str(refused.value) == f"{home} is writable by other users (mode {mode:04o})"
    assert refused.value.hint == f"Make it private: chmod go-w {home}"
    home.chmod(0o755)
    with _opened(home) as directory:
        directory.require_private()


def test_a_link_is_not_entered(home: Path) -> None:
    (home / "real").mkdir()
    (home / "link").symlink_to(home / "real")
    (home / "file").touch()
    with _opened(home) as directory:
        with directory.enter("real") as inner:
            assert inner.path == home / "real"
        for name in ("link", "file"):
            with pytest.raises(EmbeddedFolderUnsafe) as refused:
                directory.enter(name)
            path = home / name
            assert str(refused.value) == f"{path} is not a directory, or it is a symbolic link"
            assert refused.value.hint == f"Remove it if you do not need it: rm {path}"
        with pytest.raises(FileNotFoundError):
            directory.enter("missing")


def test_a_home_is_created_private_with_its_parents(tmp_path: Path) -> None:
    home = tmp_path / "a" / "b"
    with pytest.raises(FileNotFoundError), open_home(home, home):
        pass
    before = _descriptors()
    with open_home(home, home, create=True) as directory:
        assert (directory.path, directory.owner) == (home, os.geteuid())
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    with open_home(home, home, create=True):
        pass
    with open_directory(home) as directory:
        assert directory.path == home
    assert _descriptors() == before


def test_links_on_the_way_are_followed_where_only_we_could_set_them(tmp_path: Path) -> None:
    real = tmp_path / "real" / "home"
    real.mkdir(parents=True, mode=0o700)
    (tmp_path / "absolute").symlink_to(real)
    (tmp_path / "relative").symlink_to("real/../real/home")
    for name in ("absolute", "relative"):
        with open_home(tmp_path / name, real) as directory:
            assert directory.path == real


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(EmbeddedFolderUnsafe) as refused:
        Folder(loop).create()
    assert str(loop) in str(refused.value)


def test_a_file_on_the_way_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "home"
    if os.geteuid() == 0:
        with pytest.raises(EmbeddedFolderUnsafe) as refused, open_directory(path, path):
            pass
        assert str(refused.value) == (
            f"{path} cannot be opened: a part of its path is not a directory, or was replaced"
        )


def test_a_group_is_that_of_the_account() -> None:
    assert primary_group(0) == 0
    with pytest.raises(EmbeddedPlatform) as refused:
        primary_group(3_999_999)
    assert str(refused.value) == (
        "The folder of the server belongs to user id 3999999, which has no account here"
    )
    assert refused.value.hint == (
        "Set TRUNKLINE_HOME to a folder that belongs to you, or create the account."
    )


@_ROOT
def test_root_gives_new_files_to_the_owner_of_the_folder(home: Path) -> None:
    os.chown(home, 65534, 65534)
    with _opened(home) as directory:
        directory.replace("a", "x")
        assert (home / "a").stat().st_uid == 65534
        os.link(home / "a", home / "b")
        with pytest.raises(EmbeddedFolderUnsafe, match=r"a has other names \(hard links\)"):
            directory.read("a")
        (home / "mine").touch(mode=0o600)
        os.chown(home / "mine", 1, 1)
        with pytest.raises(EmbeddedFolderUnsafe) as refused:
            directory.read("mine")
        assert str(refused.value) == (
            f"{home / 'mine'} belongs to user id 1, its directory to user id 65534"
        )
        (home / "sub").mkdir()
        with pytest.raises(EmbeddedFolderUnsafe) as refused:
            directory.enter("sub")
        assert str(refused.value) == (
            f"{home / 'sub'} belongs to user id 0, {home} to user id 65534"
        )


@_ROOT
def test_root_waits_a_moment_for_a_file_that_is_on_its_way_to_its_owner(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(home, 65534, 65534)
    (home / "a").write_text("x")
    (home / "a").chmod(0o600)
    monkeypatch.setattr(
        "trunkline.embedded.directory.time.sleep", lambda _: os.chown(home / "a", 65534, 65534)
    )
    with _opened(home) as directory:
        assert directory.read("a") == "x"
        os.chown(home / "a", 0, 0)
        monkeypatch.setattr("trunkline.embedded.directory._SETTLE", -1.0)
        with pytest.raises(EmbeddedFolderUnsafe, match="belongs to user id 0"):
            directory.read("a")


@_ROOT
def test_root_passes_only_where_nobody_else_decides(tmp_path: Path) -> None:
    between = tmp_path / "between"
    home = between / "home"
    home.mkdir(parents=True)
    os.chown(between, 65534, 65534)
    with pytest.raises(EmbeddedFolderUnsafe) as refused, open_home(home, home):
        pass
    assert str(refused.value) == (
        f"{between} belongs to user id 65534, who could replace {home} of user id 0"
    )
    os.chown(home, 65534, 65534)
    with open_home(home, home) as directory:
        assert directory.owner == 65534
    missing = between / "missing"
    with pytest.raises(EmbeddedFolderUnsafe) as refused, open_home(missing, missing, create=True):
        pass
    assert str(refused.value) == f"{missing} does not exist, and {between} belongs to user id 65534"
    assert "every parent belongs to root" in refused.value.hint
    elsewhere = tmp_path / "elsewhere"
    with pytest.raises(EmbeddedFolderUnsafe) as refused, open_home(home, elsewhere):
        pass
    assert str(refused.value) == f"{home} led to {elsewhere} and now leads to {home}"


@_ROOT
def test_a_shared_directory_on_the_way_must_be_sticky_and_its_links_roots(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    home = shared / "home"
    home.mkdir(parents=True, mode=0o700)
    shared.chmod(0o777)
    with pytest.raises(EmbeddedFolderUnsafe) as refused, open_home(home, home):
        pass
    assert str(refused.value) == (
        f"{shared} is writable by other users, who could replace its contents"
    )
    assert refused.value.hint == f"Make it private: chmod go-w {shared}"
    # The group of root may write.
    shared.chmod(0o770)
    with open_home(home, home):
        pass
    os.chown(shared, 0, 65534)
    with pytest.raises(EmbeddedFolderUnsafe), open_home(home, home):
        pass
    shared.chmod(0o1777)
    link = shared / "link"
    link.symlink_to(home)
    with open_home(link, home):
        pass
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(EmbeddedFolderUnsafe) as refused, open_home(link, home):
        pass
    assert str(refused.value) == f"{link} is a symbolic link of user id 65534"
