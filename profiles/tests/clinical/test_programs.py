"""Programs of profile clinical: their limits, where they are, and the providers."""

import asyncio
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from trunkline_profiles.clinical.handlers import bounded, launch, tools
from trunkline_profiles.clinical.handlers.bounded import Ended, Limits
from trunkline_profiles.clinical.handlers.problems import BadDocument, CannotRun, StageProblem
from trunkline_profiles.clinical.handlers.providers import Provider, providers
from trunkline_profiles.clinical.handlers.tools import Tools

_BOUNDS = {"pixels": 1000, "side": 100, "inflated": 5000}


_LIMITS = Limits(cpu=5, wall=2.5, memory=7, output=9)


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        (None, "2.5 s"),
        (-signal.SIGALRM, "2.5 s"),
        (-signal.SIGXCPU, "5 s of CPU time"),
        (-signal.SIGXFSZ, "9 bytes of output"),
        (-signal.SIGKILL, "7 MiB of memory, or was killed"),
        (-signal.SIGSEGV, None),
        (0, None),
        (1, None),
    ],
)
def test_the_limit_that_ended_a_program_is_named(code: int | None, limit: str | None) -> None:
    assert Ended(code, b"", "", _LIMITS).over_limits == limit
    assert json.loads(_LIMITS.as_json()) == {
        "CPU": 5,
        "AS": 7 << 20,
        "FSIZE": 9,
        "CORE": 0,
        "NOFILE": 64,
    }


def _bounded(folder: Path, script: str, **options: Any) -> Ended:
    command = ["/bin/sh", "-c", script]
    limits = options.pop("limits", Limits())
    return asyncio.run(
        bounded.run(command, folder=folder, limits=limits, environment={"A": "b"}, **options)
    )


def test_a_program_runs_in_its_folder_with_its_environment(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"given")
    with (tmp_path / "in").open("rb") as source:
        ended = _bounded(tmp_path, 'pwd; echo "$A $HOME"; cat; echo bad >&2; exit 4', source=source)
    assert ended.printed.decode() == f"{tmp_path}\nb \ngiven"
    assert (ended.code, ended.complaint, ended.over_limits) == (4, "bad", None)
    assert _bounded(tmp_path, "cat").printed == b""
    long = _bounded(tmp_path, "printf '%0500d' 7 >&2")
    assert len(long.complaint) == 300
    assert long.complaint.endswith("7")


def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    ended = _bounded(tmp_path, "sleep 600 & wait", limits=Limits(wall=0.3))
    assert ended.code is None
    assert ended.over_limits == "0.3 s"


def test_a_program_that_cannot_start_is_no_fault_of_the_document(tmp_path: Path) -> None:
    def start(folder: Path) -> None:
        asyncio.run(bounded.run(["/no/such"], folder=folder, limits=Limits(), environment={}))

    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(CannotRun, match=r"^such cannot be started: "):
            start(folder)


def test_a_program_ended_from_outside_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(StageProblem, match=r"^sh was ended by signal 15$"):
        _bounded(
            tmp_path,
            "trap - TERM; exec " + sys.executable + ' -c "import os, signal;'
            ' signal.signal(15, signal.SIG_DFL); os.kill(os.getpid(), 15)"',
        )


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    seen: dict[str, Any] = {"limits": {}, "signals": {}, "hard": resource.RLIM_INFINITY}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, seen["hard"]))
    monkeypatch.setattr(resource, "setrlimit", seen["limits"].__setitem__)
    monkeypatch.setattr(signal, "signal", seen["signals"].__setitem__)
    monkeypatch.setattr(signal, "alarm", lambda seconds: seen.update(alarm=seconds))
    monkeypatch.setattr(os, "execv", lambda path, arguments: seen.update(run=(path, arguments)))
    return seen


def test_a_launcher_limits_itself_before_it_becomes_the_program(
    limited: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", '{"CPU": 5, "AS": 7}', "9", "/p", "a", "b"])
    launch.main()
    assert limited["limits"] == {resource.RLIMIT_CPU: (5, 6), resource.RLIMIT_AS: (7, 7)}
    assert limited["alarm"] == 9
    assert limited["run"] == ("/p", ["/p", "a", "b"])
    ignored = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
    assert limited["signals"] == {
        **dict.fromkeys(ignored, signal.SIG_IGN),
        signal.SIGPIPE: signal.SIG_DFL,
        signal.SIGXFSZ: signal.SIG_DFL,
    }
    # A lower limit of the host stays.
    limited["hard"] = 4
    launch.main()
    assert limited["limits"] == {resource.RLIMIT_CPU: (4, 4), resource.RLIMIT_AS: (4, 4)}
    limited["hard"] = 6
    launch.main()
    assert limited["limits"] == {resource.RLIMIT_CPU: (5, 6), resource.RLIMIT_AS: (6, 6)}


@pytest.mark.parametrize("arguments", [["{", "9", "/p"], ['{"CPU": 5}', "x", "/p"]])
def test_a_launcher_that_fails_is_distinguished_from_the_program(
    limited: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", *arguments])
    with pytest.raises(SystemExit) as ended:
        launch.main()
    assert ended.value.code == 125
    assert capsys.readouterr().err.startswith("trunkline launch: ")

    def refuse(*_: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    with pytest.raises(ValueError, match="no"):
        launch._limit({"AS": 1})  # noqa: SLF001


def _tool(folder: Path, name: str, text: str, code: int = 0) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{text}' >&2\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def test_tools_are_asked_for_their_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tools.find_tools() == Tools()
    assert Tools().missing == ("ImageMagick", "poppler", "tesseract")
    convert = _tool(tmp_path, "convert", "Version: ImageMagick 6")
    _tool(tmp_path, "pdftoppm", "pdftoppm version 22", 1)
    _tool(tmp_path, "tesseract", "deu fra")
    assert tools.find_tools() == Tools(magick=convert)
    magick = _tool(tmp_path, "magick", "Version: ImageMagick 7")
    pdftoppm = _tool(tmp_path, "pdftoppm", "pdftoppm version 22")
    tesseract = _tool(tmp_path, "tesseract", "deu eng")
    found = tools.find_tools()
    assert found == Tools(magick, pdftoppm, tesseract)
    assert found.missing == ()


@pytest.mark.parametrize(
    ("ended", "message"),
    [
        (Ended(None, b"", "", _LIMITS), "over_limits: p took more than 2.5 s"),
        (Ended(3, b"", "why", _LIMITS), "p ended with 3: why"),
        (
            Ended(0, b"x" * ((16 << 20) + 1), "", _LIMITS),
            f"p printed more than {16 << 20} bytes",
        ),
        (Ended(0, b"x" * (16 << 20), "", _LIMITS), None),
    ],
)
def test_a_tool_that_fails_blames_the_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ended: Ended, message: str | None
) -> None:
    told: list[Any] = []

    async def run(*_: Any, environment: Any, **__: Any) -> Ended:
        told.append(environment)
        return ended

    monkeypatch.setattr(bounded, "run", run)
    monkeypatch.setenv("OPENAI_KEY", "secret")
    monkeypatch.setenv("TESSDATA_PREFIX", "/t")
    if message is None:
        assert asyncio.run(tools.run(["/a/p"], folder=tmp_path)) == ended.printed
    else:
        with pytest.raises(BadDocument) as refused:
            asyncio.run(tools.run(["/a/p"], folder=tmp_path))
        assert str(refused.value) == message
    assert "OPENAI_KEY" not in told[0]
    assert (told[0]["TESSDATA_PREFIX"], told[0]["OMP_THREAD_LIMIT"]) == ("/t", "1")


def test_providers_come_from_the_environment() -> None:
    found = providers(
        {
            "TRUNKLINE_CLINICAL_URL_OPENAI": "https://o/",
            "TRUNKLINE_CLINICAL_KEY_OPENAI": "k",
            "TRUNKLINE_CLINICAL_URL_MY_OWN": "http://m",
            "TRUNKLINE_CLINICAL_KEY_MY_OWN": "",
            "TRUNKLINE_CLINICAL_URL_EMPTY": "",
            "OTHER_TRUNKLINE_CLINICAL_URL_X": "http://x",
        }
    )
    assert found == {"openai": Provider("https://o/", "k"), "my-own": Provider("http://m")}
    assert found["openai"].headers == {"Authorization": "Bearer k"}
    assert found["my-own"].headers == {}
    assert found["openai"].address("v1/x") == "https://o/v1/x"
    assert "k'" not in repr(found["openai"])
