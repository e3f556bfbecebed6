"""Which pg_dump is run, and how its end is told."""

import os
import sys
from pathlib import Path

import pytest

from trunkline.backup import programs
from trunkline.backup.programs import Process, Program, find, running
from trunkline.errors import BackupError, BackupFailed, BackupProgramsMissing


def _program(folder: Path, text: str, name: str = "pg_dump") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def _version(version: str) -> str:
    return f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {version}'\n"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("trunkline.embedded.binaries.folders", lambda: iter([tmp_path / "first"]))
    path = os.pathsep.join(["", *(str(tmp_path / name) for name in ("a", "b", "c", "d"))])
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}/bin")
    for name, version in (("a", "17.1"), ("b", "15.3"), ("c", "16.2"), ("first", "16.9")):
        _program(tmp_path / name, _version(version))
    _program(tmp_path / "d", "no program at all")
    return tmp_path


@pytest.mark.parametrize(
    ("server", "at_least", "folder"),
    [(15, 0, "b"), (14, 0, "b"), (16, 0, "first"), (15, 16, "first"), (17, 15, "a"), (9, 17, "a")],
)
def test_the_oldest_program_that_is_new_enough_is_used(
    places: Path, server: int, at_least: int, folder: str
) -> None:
    found = find("pg_dump", server=server, at_least=at_least)
    assert found.path == places / folder / "pg_dump"
    assert found.major == max(server, at_least, 15)


def test_what_is_missing_is_named_with_what_is_there(places: Path) -> None:
    with pytest.raises(BackupProgramsMissing) as refused:
        find("pg_dump", server=18, at_least=12)
    assert str(refused.value) == "pg_dump 18 or newer is needed; versions found: 15, 16, 17"
    with pytest.raises(BackupProgramsMissing, match="versions found: none"):
        find("pg_other", server=15)


def test_passwords_are_passed_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN", "x")
    line, variables = programs.connection("postgresql://u:secret@h/d")
    assert "secret" not in line
    assert (variables["PGPASSWORD"], variables["LC_ALL"], variables["OWN"]) == ("secret", "C", "x")
    monkeypatch.delenv("PGPASSWORD", raising=False)
    assert "PGPASSWORD" not in programs.connection("host=h")[1]
    with pytest.raises(BackupError) as refused:
        programs.connection("host=h sslpassword=x")
    assert str(refused.value).startswith("pg_dump and pg_restore take sslpassword on their command")
    assert refused.value.hint == "Use a client key without a pass phrase."


def _script(tmp_path: Path, body: str) -> Program:
    return Program(_program(tmp_path, f"#!{sys.executable}\nimport sys\n{body}\n"), 18)


def test_a_program_writes_its_result_to_a_pipe(tmp_path: Path) -> None:
    program = _script(tmp_path, "print(sys.argv[1:])")
    with running(program, "host=h", ["--format=custom"]) as process:
        shown = process.output.read().decode()
    assert shown == "['--format=custom', '--no-password', '--dbname=host=h']\n"
    assert process.output.closed


def test_a_program_reads_its_data_from_a_pipe(tmp_path: Path) -> None:
    target = tmp_path / "target"
    program = _script(tmp_path, f"open({str(target)!r}, 'w').write(sys.stdin.read())")
    with running(program, "host=h", [], reads=True) as process:
        process.input.write(b"data")
    assert target.read_text() == "data"


def test_a_program_that_fails_is_reported_with_its_last_output(tmp_path: Path) -> None:
    program = _script(tmp_path, "sys.stderr.write('a' * 10 + 'b' * 4000 + '\\n'); sys.exit(3)")
    with pytest.raises(BackupFailed) as failed, running(program, "host=h", []):
        pass
    assert str(failed.value) == "pg_dump failed: " + "b" * 4000


def test_a_program_that_stops_reading_is_reported_with_its_output(tmp_path: Path) -> None:
    program = _script(tmp_path, "sys.stdin.close(); sys.stderr.write('full'); sys.exit(1)")

    def feed() -> None:
        with running(program, "host=h", [], reads=True) as process:
            for _ in range(1000):
                process.input.write(b"x" * 100_000)

    with pytest.raises(BackupFailed, match=r"^pg_dump failed: full$"):
        feed()


def test_a_program_does_not_outlive_an_error(tmp_path: Path) -> None:
    program = _script(tmp_path, "import time\nprint('ready', flush=True)\ntime.sleep(600)")
    seen: list[Process] = []

    def fail() -> None:
        with running(program, "host=h", []) as process:
            process.output.readline()
            seen.append(process)
            raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert seen[0]._process.returncode == -9  # noqa: SLF001
