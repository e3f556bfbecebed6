"""The runner of the snippets notices when a page is wrong; without that it would prove nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.running import Failed, Session
from tests.docs.transcript import agrees, commands
from tests.support.waiting import until

PAGE = Path("page.md")


def read(reader: Session, text: str) -> None:
    for block in pages.blocks(PAGE, text):
        reader.do(block)


def test_files_commands_python_and_sql_share_a_folder_and_a_database(reader: Session) -> None:
    read(
        reader,
        """
Write `hello/there.py`:

```python
NAME = "you"
```

```python
import asyncio
from hello.there import NAME

await asyncio.sleep(0)
print("hello", NAME)
```

<!-- output -->
```text
hello y…
```

```console
$ export GREETING=hi
$ ls hello/*.py
hello/there.py
```

```console
$ echo "$GREETING" \\
>   all
hi all
$ sleep 600 &
$ kill -9 %1
$ echo "still here"
still here
```

```sql
select count(*) > 0 as tasks from trunkline.settings;
```

<!-- output -->
```text
 tasks
-------
 t
(1 row)
```
""",
    )
    assert (reader.folder / "hello" / "there.py").read_text() == 'NAME = "you"\n'


@pytest.mark.parametrize(
    "text",
    [
        "```python\nassert 1 == 2\n```",
        "```python\nimport no_such_module\n```",
        "```python\nprint(1)\n```\n<!-- output -->\n```text\n2\n```",
        "```console\n$ echo one\ntwo\n```",
        "```console\n$ false\n```",
        "<!-- exit: 1 -->\n```console\n$ true\n```",
        "<!-- exit: 1 -->\n```console\n$ false\n$ false\n```",
        "```console\n$ trunkline no-such-command\n```",
        "```sql\nselect no_such_column;\n```",
    ],
)
def test_a_wrong_page_fails(reader: Session, text: str) -> None:
    with pytest.raises(Failed):
        read(reader, text)


def test_nothing_is_left_when_a_command_hangs(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="not within"),
        Session(tmp_path, os.environ, patience=0.5) as reader,
    ):
        read(reader, "```console\n$ sleep 600 & echo $! > pid\n$ cat <<END\n```")
    process = int((tmp_path / "pid").read_text())
    until(lambda: not alive(process), "the job in the background is killed")


def alive(process: int) -> bool:
    shown = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)],  # noqa: S607 - ps of this machine
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    # One that nobody has asked yet how it ended is a zombie.
    return bool(shown) and not shown.startswith("Z")


def test_a_skipped_block_is_not_run_and_has_a_reason(reader: Session) -> None:
    text = "<!-- skip: needs a second machine -->\n```console\n$ false\n```"
    read(reader, text)
    assert [block.skip for block in pages.blocks(PAGE, text)] == ["needs a second machine"]


def test_a_remark_counts_for_the_next_block_only() -> None:
    text = "<!-- exit: 3 -->\n```console\n$ false\n```\n\nand\n\n```console\n$ true\n```"
    assert [block.directives for block in pages.blocks(PAGE, text)] == [{"exit": "3"}, {}]


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        (["a", "…", "d"], "a\nb\nc\nd\n", True),
        (["a", "…", "d"], "a\nd\n", True),
        (["a", "…", "d"], "a\nb\n", False),
        (["job … is …"], "job 7 is ready\n", True),
        (["job … is ready"], "job 7 is dead\n", False),
        (["a.c"], "abc\n", False),
        (["a"], "a\nb\n", False),
        (["…"], "", True),
    ],
)
def test_dots_stand_for_anything(shown: list[str], real: str, same: bool) -> None:
    assert agrees(shown, real) is same


def test_a_command_goes_on_over_several_lines() -> None:
    (command,) = commands("$ cat <<END\n> a\n>\n>   b\n> END\na\n\n  b\n")
    assert command.text == "cat <<END\na\n\n  b\nEND"
    assert command.shown == ["a", "", "  b"]


def test_output_without_a_command_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="begins with a command"):
        commands("hello\n")
