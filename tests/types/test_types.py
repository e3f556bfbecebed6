"""What a type checker says to users of the public names, good calls and bad ones."""

import re
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

_EXPECTED = re.compile(r"# type: ignore\[([a-z, -]+)\]")
_ERROR = re.compile(r":(\d+): error: .*\[([a-z-]+)\]$")

pytestmark = pytest.mark.slow


def errors(*files: Path, cache: Path) -> set[tuple[str, int, str]]:
    """Every error of a strict check as (file, line, code)."""
    output, trouble, _ = api.run(
        [
            f"--config-file={ROOT / 'pyproject.toml'}",
            f"--cache-dir={cache}",
            "--no-error-summary",
            "--hide-error-context",
            "--no-pretty",
            *map(str, files),
        ]
    )
    assert not trouble
    found = set()
    for line in output.splitlines():
        if ": note: " in line:
            continue
        match = _ERROR.search(line)
        assert match, line
        found.add((Path(line.partition(":")[0]).name, int(match[1]), match[2]))
    return found


def test_good_calls_pass_and_bad_ones_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The paths in the configuration are relative.
    monkeypatch.chdir(ROOT)
    refused = (HERE / "refused.py").read_text(encoding="utf-8")
    bare = tmp_path / "refused_without_comments.py"
    bare.write_text(_EXPECTED.sub("", refused), encoding="utf-8")
    expected = {
        (bare.name, number, code)
        for number, line in enumerate(refused.splitlines(), 1)
        if (match := _EXPECTED.search(line))
        for code in match[1].split(", ")
    }
    assert len(expected) > 30
    found = errors(HERE / "accepted.py", bare, cache=tmp_path / "cache")
    assert found == expected
