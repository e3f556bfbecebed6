"""``trunkline completion``, in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.driving import clean_environment, process

FOLDER = str(Path(sys.executable).parent)


def bash(script: str) -> str:
    result = subprocess.run(
        ["/bin/bash", "--norc", "-c", "source <(trunkline completion bash)\n" + script],
        env=clean_environment() | {"PATH": f"{FOLDER}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert result.stderr == ""
    return result.stdout


def completed(*words: str) -> list[str]:
    listed = " ".join(f"'{word}'" for word in words)
    return bash(
        f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}\n"
        "_trunkline_completion trunkline; printf '%s\\n' \"${COMPREPLY[@]}\""
    ).split()


def test_bash_knows_the_command() -> None:
    assert bash("complete -p trunkline").strip().endswith("_trunkline_completion trunkline")


def test_bash_completes_commands_and_options() -> None:
    assert completed("trunkline", "wor") == ["worker", "workers", "workflows"]
    commands = "cancel count discard enqueue explain list reprioritise reset-step retry show tail"
    assert " ".join(completed("trunkline", "jobs", "")) == commands
    assert "--no-follow" in completed("trunkline", "jobs", "tail", "--")
    assert completed("trunkline", "jobs", "list", "--state", "r") == ["ready", "running"]
    assert completed("trunkline", "completion", "z") == ["zsh"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_is_for_its_shell(shell: str) -> None:
    result = process("completion", shell)
    assert (result.returncode, result.stderr) == (0, "")
    assert f"_TRUNKLINE_COMPLETE={shell}_complete" in result.stdout
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=result.stdout, text=True, check=True)


def test_other_shells_are_refused() -> None:
    result = process("completion", "csh")
    assert result.returncode == 2
    assert "'bash', 'zsh', 'fish'" in result.stderr
