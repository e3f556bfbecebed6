"""Files, host tools, OCR and layout, with the real programs."""

import asyncio
import os
import stat
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from trunkline_profiles.clinical.handlers import ocr, spatial, tools
from trunkline_profiles.clinical.handlers.bounded import Limits
from trunkline_profiles.clinical.handlers.files import Folder, left_by
from trunkline_profiles.clinical.handlers.problems import BadDocument, CannotRun
from trunkline_profiles.clinical.handlers.tools import Tools, find_tools
from trunkline_profiles.clinical.stubs.scans import report_lines, scan, typeset

LINES = report_lines(4)


def turned(data: bytes, folder: Path, *arguments: str, kind: str) -> bytes:
    """The page as another kind of picture, made by ImageMagick."""
    (folder / "in.png").write_bytes(data)
    magick = find_tools().magick
    assert magick is not None
    command = [magick, "in.png", *arguments, f"{kind}:out"]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    return (folder / "out").read_bytes()


def lines_of(kind: str, data: bytes) -> list[str]:
    tables = asyncio.run(ocr.read(find_tools(), kind, data))
    return spatial.layout(tables).text.splitlines()


def test_cp_07_a_file_is_in_the_folder_of_its_patient(tmp_path: Path) -> None:
    """CP-07: no path leads anywhere else."""
    store = Folder(tmp_path)
    patient, other = uuid4(), uuid4()
    path = store.write(patient, f"{patient}/scans/page 1.png".replace(" ", "-"), b"page")
    assert store.read(patient, path) == b"page"
    assert (tmp_path / str(patient) / "scans" / "page-1.png").read_bytes() == b"page"
    store.write(patient, path, b"again")
    assert [p.name for p in (tmp_path / str(patient) / "scans").iterdir()] == ["page-1.png"]
    for wrong in (
        path.replace(str(patient), str(other)),
        f"{patient}/../{other}/page-1.png",
        f"{patient}/.hidden",
        f"{patient}//x",
        f"/{patient}/x",
        f"{patient}",
        "",
    ):
        with pytest.raises(BadDocument):
            store.read(patient, wrong)
    with pytest.raises(BadDocument, match="not in the folder"):
        store.read(other, path)
    with pytest.raises(BadDocument, match="no file"):
        store.read(patient, left_by(patient, uuid4(), "fast_queue_ocr"))


def test_a_draft_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = uuid4()

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        Folder(tmp_path).write(patient, f"{patient}/x", b"data")
    assert list((tmp_path / str(patient)).iterdir()) == []


def test_cp_70_tools_are_asked_for_their_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP-70: a program of that name that is something else does not count."""
    assert find_tools().missing == ()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_tools().missing == ("ImageMagick", "poppler", "tesseract")
    for name, said in {
        "convert": "echo a disk converter",
        "pdftoppm": "echo pdftoppm version 22 >&2",
        "tesseract": "echo deu",
    }.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{said}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    found = find_tools()
    # Tesseract without the data of the language reads nothing.
    assert found.missing == ("ImageMagick", "tesseract")
    with pytest.raises(BadDocument, match="ImageMagick, tesseract"):
        asyncio.run(ocr.read(found, "pdf", b""))


def test_pages_are_read() -> None:
    """CP-09: a scanned PNG and a PDF say the same."""
    assert lines_of("png", scan(LINES)) == LINES
    assert lines_of("pdf", typeset(LINES)) == LINES


def test_photos_are_turned_upright(tmp_path: Path) -> None:
    """As phones make them: rotated, with a note that says so; and in colour."""
    sideways = turned(
        scan(LINES), tmp_path, *("-rotate", "90", "-orient", "LeftBottom"), kind="tiff"
    )
    assert lines_of("tiff", sideways) == LINES
    assert lines_of("jpeg", turned(scan(LINES), tmp_path, "-quality", "90", kind="jpeg")) == LINES


def test_what_cannot_be_read_is_the_documents_fault() -> None:
    with pytest.raises(BadDocument, match="pdftoppm ended with"):
        lines_of("pdf", b"%PDF-1.4 nothing")
    with pytest.raises(BadDocument, match="ended with"):
        lines_of("png", b"\x89PNG\r\n\x1a\n nothing")


@pytest.mark.parametrize(
    ("script", "limits", "problem"),
    [
        ("kill -9 $$", Limits(), "of memory, or was killed"),
        ("kill -SEGV $$", Limits(), "ended with -11"),
        ("while :; do :; done", Limits(cpu=1), "took more than 1 s of CPU time"),
        ("exec sleep 600", Limits(wall=0.1), "took more than 0.1 s"),
        ("exec head -c 5000 /dev/zero", Limits(output=4096), "4096 bytes of output"),
    ],
)
def test_a_tool_that_is_ended_by_the_document_is_not_tried_again(
    tmp_path: Path, script: str, limits: Limits, problem: str
) -> None:
    """The limits are those of one document: another attempt would reach them again."""
    with pytest.raises(BadDocument, match=problem):
        asyncio.run(tools.run(["/bin/sh", "-c", script], folder=tmp_path, limits=limits))


def test_a_large_page_does_not_fill_the_memory(tmp_path: Path) -> None:
    """The rasteriser is bounded itself, should a page pass the check that should not."""
    large = typeset(LINES).replace(b"0 0 595 842", b"0 0 14400 14400")
    with pytest.raises(BadDocument, match="pdftoppm"):
        lines_of("pdf", large)


def test_a_program_that_is_not_there_is_no_fault_of_the_document(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="cannot be started"):
        asyncio.run(tools.run([str(tmp_path / "nothing")], folder=tmp_path))


def test_a_tool_that_prints_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document must not fill the memory of the worker."""
    monkeypatch.setattr(tools, "_MOST_PRINTED", 1000)
    program = ["/bin/sh", "-c", "head -c 1001 /dev/zero"]
    with pytest.raises(BadDocument, match="more than 1000 bytes"):
        asyncio.run(tools.run(program, folder=tmp_path))
    program = ["/bin/sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x >&2; echo why >&2; exit 3"]
    with pytest.raises(BadDocument, match=r"sh ended with 3: x{296}why$"):
        asyncio.run(tools.run(program, folder=tmp_path))


def test_cp_74_a_tool_ends_with_its_job(tmp_path: Path) -> None:
    """CP-74: a worker that hands a job back leaves no program running."""

    async def stop_it() -> int:
        job = asyncio.create_task(
            tools.run(["/bin/sh", "-c", "echo $$ > pid; exec sleep 600"], folder=tmp_path)
        )
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            await asyncio.sleep(0.01)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        return int((tmp_path / "pid").read_text())

    pid = asyncio.run(stop_it())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_layout_has_the_positions_of_lines() -> None:
    tables = asyncio.run(ocr.read(find_tools(), "png", scan(LINES)))
    found = spatial.layout([*tables, *tables])
    assert [page.number for page in found.pages] == [1, 2]
    lines = found.pages[0].lines
    assert [line.text for line in lines] == LINES
    tops = [line.box[1] for line in lines]
    assert tops == sorted(tops)
    # Set at 60 of 595 points from the left, 80 of 842 from above.
    left, top, right, bottom = lines[0].box
    assert left == pytest.approx(60 / 595, abs=0.01)
    assert top == pytest.approx(70 / 842, abs=0.01)
    assert left < right <= 1
    assert top < bottom <= 1
    assert found.confidence > 80
    assert found.words == 2 * len(" ".join(LINES).split())


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("", "not a table"),
        ("a\tb\n", "not a table"),
        ("\t".join(spatial._COLUMNS) + "\n", "no page"),  # noqa: SLF001
        ("\t".join(spatial._COLUMNS) + "\n1\tx\n", "damaged"),  # noqa: SLF001
    ],
)
def test_a_table_that_is_none(table: str, problem: str) -> None:
    with pytest.raises(BadDocument, match=problem):
        spatial.layout([table])


def test_a_page_without_words_is_a_page() -> None:
    table = "\t".join(spatial._COLUMNS) + "\n1\t1\t0\t0\t0\t0\t0\t0\t10\t20\t-1\t\n"  # noqa: SLF001
    found = spatial.layout([table])
    assert (found.words, found.confidence, found.pages[0].height) == (0, 0.0, 20)
    assert Tools().missing == ("ImageMagick", "poppler", "tesseract")


def test_cp_78_programs_that_read_documents_receive_no_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP-78: what strangers send is read by programs that could not tell a key to anybody."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("TRUNKLINE_DSN", "postgresql://user:secret@host/db")
    told = asyncio.run(tools.run(["/usr/bin/env"], folder=tmp_path)).decode()
    assert "secret" not in told
    assert {"PATH", "OMP_THREAD_LIMIT"} <= {line.partition("=")[0] for line in told.splitlines()}
