"""The page about the profile: its SQL runs, its commands exist, its tables are true."""

import re
from pathlib import Path

import pytest

from profiles.tests.executor.conftest import TYPES, Desk
from profiles.tests.executor.test_cli import trunkline
from tests.support.databases import Database

PAGE = Path(__file__).parents[2] / "docs" / "executor.md"
TEXT = PAGE.read_text(encoding="utf-8")

# Run elsewhere: test_tasks starts workers, test_cli the demonstration and a wake-up that ends.
ELSEWHERE = ("pip install", "trunkline worker", "trunkline profile demo", "trunkline profile wake")


def commands() -> list[str]:
    blocks = re.findall(r"^```console\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    return [re.sub(r"\s+#.*", "", line.removeprefix("$ ")) for line in lines]


def test_the_sql_of_the_page_runs_for_an_operator(desk: Desk) -> None:
    blocks = re.findall(r"^```sql\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 6
    for block in blocks:
        desk.operator.connection.execute(block.encode())
    for inline in re.findall(r"`(select [^`…]+)`", TEXT):
        if "cron.schedule" not in inline:
            desk.operator.connection.execute(inline.encode())


def test_the_commands_of_the_page_run(database: Database) -> None:
    ran = 0
    for command in commands():
        if command.startswith(ELSEWHERE):
            continue
        words = command.split()
        assert words[:2] == ["trunkline", "profile"], command
        trunkline(database, *words[2:])
        ran += 1
    assert ran >= 4


@pytest.mark.parametrize(("kind", "minutes"), TYPES.items())
def test_the_table_of_types_is_true(kind: str, minutes: int) -> None:
    """RC-05: what the page promises is what the specification says."""
    assert f"| `{kind}` | {minutes} min |" in TEXT


def test_the_table_of_rights_is_true() -> None:
    """RC-62: every function whose rights are tested is on the page."""
    for name in ("update_job_heartbeat", "reclaim_stale_jobs", "enqueue_job", "set_job_type"):
        assert re.search(rf"^\| .*`{name}`.*\|$", TEXT, re.MULTILINE), name
