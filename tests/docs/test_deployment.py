"""The files of the deployment pages: understood by their tools, with commands that exist."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from tests.docs.commands import check
from tests.docs.pages import DOCS, Block, blocks

HOW_TO = DOCS / "how-to"


def file(page: str, name: str) -> str:
    found: list[Block] = [block for block in blocks(HOW_TO / page) if block.file == name]
    assert len(found) == 1, f"{page} should show {name} once"
    return found[0].text


def unit(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


def test_the_unit_starts_a_command_that_exists() -> None:
    parsed = unit(file("deployment-systemd.md", "trunkline-worker.service"))
    context = check(shlex.split(parsed["Service"]["ExecStart"]))
    assert context.command_path == "trunkline worker"
    assert context.params["processes"] == 2


def test_the_unit_gives_the_worker_time_to_finish() -> None:
    service = unit(file("deployment-systemd.md", "trunkline-worker.service"))["Service"]
    grace = check(shlex.split(service["ExecStart"])).params["grace"]
    assert float(service["TimeoutStopSec"]) > float(grace)
    # Only the supervisor gets the signal; it passes it on.
    assert service["KillMode"] == "mixed"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    text = file("deployment-systemd.md", "trunkline-worker.service")
    program = Path(sys.executable).with_name("trunkline")
    path = tmp_path / "trunkline-worker.service"
    # The program must exist where the unit says, so here it says where it is.
    path.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={program}", text), encoding="utf-8")
    assert verified(path) == ""
    path.write_text(text.replace("KillMode=mixed", "KillMode=most"), encoding="utf-8")
    assert ": most" in verified(path)


def verified(path: Path) -> str:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", str(path)],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    # Units of the machine itself may be faulty too.
    return "".join(line for line in done.stderr.splitlines(keepends=True) if path.name in line)


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Containerfile with their arguments, continued lines as one."""
    joined = re.sub(r"\\\n", " ", text)
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


def test_the_image_runs_a_command_that_exists() -> None:
    found = instructions(file("deployment-containers.md", "Containerfile"))
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "STOPSIGNAL", "CMD", "ENV"}
    assert {name for name, _ in found} <= known
    assert found[0][0] == "FROM"
    (command,) = [json.loads(text) for name, text in found if name == "CMD"]
    assert check(command).command_path == "trunkline worker"


def test_the_services_fit_together() -> None:
    yaml = pytest.importorskip("yaml")
    services: dict[str, Any] = yaml.safe_load(file("deployment-containers.md", "compose.yaml"))[
        "services"
    ]
    assert set(services) == {"db", "schema", "worker"}
    assert check(services["schema"]["command"]).command_path == "trunkline schema install"
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
    assert services["worker"]["environment"] == services["schema"]["environment"]
    grace = check(["trunkline", "worker", "app:app"]).params["grace"]
    assert float(services["worker"]["stop_grace_period"].removesuffix("s")) > float(grace)


def test_a_command_that_does_not_exist_is_found() -> None:
    with pytest.raises(click.UsageError):
        check(["trunkline", "worker", "app:app", "--no-such-option"])
    with pytest.raises(click.UsageError):
        check(["trunkline", "no-such-command"])
