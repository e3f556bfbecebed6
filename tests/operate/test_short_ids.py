"""Artifacts and lines of the log are found by the start of an id, also on the command line."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from tests.cli.driving import Cli
from tests.operate.conftest import Scene
from tests.operate.tenant_objects import CONTENT, Objects, arrange
from trunkline.artifacts import LocalStore
from trunkline.artifacts.address import VARIABLE
from trunkline.errors import InvalidArgument, UnknownArtifact
from trunkline.operate import SyncOperator
from trunkline.operate.job_ids import start_of_id

NOBODY = UUID("01930000-0000-7000-8000-000000000000")


@pytest.fixture
def theirs(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Objects:
    store = LocalStore(tmp_path / "files")
    monkeypatch.setenv(VARIABLE, store.address)
    return arrange(scene, store)


def test_the_start_of_an_id_is_resolved(scene: Scene, theirs: Objects) -> None:
    resolve = scene.operator.artifacts.resolve_id
    assert resolve(str(theirs.file)[:30]) == theirs.file
    assert resolve(theirs.file.hex[:28].upper()) == theirs.file
    with pytest.raises(UnknownArtifact) as refused:
        resolve("00000000")
    assert refused.value.detail["artifact"] == "00000000"
    # The three files were begun in the same minute.
    with pytest.raises(InvalidArgument, match="several artifacts") as refused_too:
        resolve(theirs.file.hex[:8])
    assert str(theirs.file) in str(refused_too.value)
    with pytest.raises(InvalidArgument):
        resolve("song.mp3")


def test_a_whole_id_is_returned_without_a_query() -> None:
    # Nobody listens there.
    with SyncOperator("host=127.0.0.1 port=1") as operator:
        assert operator.artifacts.resolve_id(NOBODY) == NOBODY
        assert operator.artifacts.resolve_id(str(NOBODY)) == NOBODY


def test_a_tenant_does_not_resolve_the_artifact_of_another(scene: Scene, theirs: Objects) -> None:
    with pytest.raises(UnknownArtifact):
        scene.as_role("operator", tenant="a").artifacts.resolve_id(str(theirs.file)[:30])


def test_commands_take_the_start_of_an_id(scene: Scene, theirs: Objects, tmp_path: Path) -> None:
    cli = Cli(scene.database.dsn)
    file, job = str(theirs.file)[:30], str(theirs.uploader)[:30]
    assert {line["name"] for line in cli.json("artifacts", "list", "--job", job)} >= {"of b.txt"}
    workflow = theirs.live_workflow[:30]
    assert cli.json("artifacts", "list", "--workflow", workflow) == []
    everything = cli.json("artifacts", "list")
    rest = cli.json("artifacts", "list", "--after", everything[0]["id"][:30])
    assert [line["id"] for line in rest] == [line["id"] for line in everything[1:]]
    assert cli.json("artifacts", "show", file)["id"] == str(theirs.file)
    assert cli.json("artifacts", "link", file)["artifact"] == str(theirs.file)
    copy = tmp_path / "copy.txt"
    cli.text("artifacts", "get", file, "--output", copy)
    assert CONTENT in copy.read_text()
    assert f"Artifact {theirs.file} deleted." in cli.text("artifacts", "delete", file, "--yes")


def test_the_log_is_filtered_by_the_start_of_an_id(scene: Scene, theirs: Objects) -> None:
    cli = Cli(scene.database.dsn)
    scene.operator.jobs.cancel(theirs.waiting)
    scene.operator.queues.pause("0193abcd")
    for start in (theirs.waiting, theirs.waiting[:30], theirs.waiting.replace("-", "")[:25]):
        lines = cli.json("log", "--object", start)
        assert [line["object"] for line in lines] == [theirs.waiting], start
    [line] = scene.operator.log.list(object_name="0193abcd")
    assert line.kind == "queue"
    assert scene.operator.log.list(object_name=theirs.waiting[:7]) == []


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("01930000", "01930000"),
        ("019300000", "01930000-0"),
        ("0193-0000-0000", "01930000-0000"),
        (NOBODY.hex, str(NOBODY)),
        (NOBODY.hex[:20].upper(), "01930000-0000-7000-8000"),
        (NOBODY.hex[:21], "01930000-0000-7000-8000-0"),
        ("0193", None),
        ("mail", None),
    ],
)
def test_the_start_of_an_id_is_written_with_its_dashes(text: str, start: str | None) -> None:
    assert start_of_id(text) == start
