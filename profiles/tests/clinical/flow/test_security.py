"""The security check: judged by the bytes, in a child process, with a code for each reason."""

import asyncio
import json
import logging
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profiles.tests.clinical.flow.documents import (
    CATALOG,
    PAGE,
    PAGES,
    PDF,
    SCRIPT,
    catalog,
    chunk,
    jpeg,
    pack,
    packed_pdf,
    pdf,
    png,
    stream,
    tiff,
    updated,
)
from trunkline import Snooze
from trunkline.errors import ProfileNeedsPackages
from trunkline_profiles.clinical import demo, tasks
from trunkline_profiles.clinical.handlers import examine_pdf, security
from trunkline_profiles.clinical.handlers.bounded import Limits
from trunkline_profiles.clinical.handlers.ending import at_work
from trunkline_profiles.clinical.handlers.files import Folder
from trunkline_profiles.clinical.handlers.problems import CannotRun, Rejected
from trunkline_profiles.clinical.handlers.security import Bounds, Screened
from trunkline_profiles.clinical.handlers.tools import Tools

LINK = b"/Annots [<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A %s >>]"
WEB = b"<< /S /URI /URI (https://example.com/JavaScript/JS?a=/Launch) >>"
FORM = (
    b"/AcroForm << /DA (/Helv 0 Tf 0 g) /Fields [<< /FT /Tx /T (/JS name) /Subtype /Widget"
    b" /Rect [0 0 9 9] /V (/S /JavaScript) >> << /FT /Btn /T (b) /Subtype /Widget"
    b" /Rect [0 0 9 9] /A << /S /ResetForm >> >>] >>"
)
ALIVE = (b"<< /S /JavaScript /JS (x) >>", b"<< /S /Launch /F (cmd.exe) >>")
# Headers that readers accept although hardly a program writes them.
HEADERS = (
    *(b"4 %c\n0 obj", b"4 0 %c\nobj", b"4%c\r0%c\robj", b"%c\n4 0 obj"),
    *(b"000000000000004 0 obj", b"4 0000000 obj"),
)
# Headers that only some readers accept, or that readers understand in different ways.
UNCLEAR = (b"4 +0 obj", b"4 0. obj", b"4 %5 0 obj\n0 obj")
IMAGE = b"/Type /XObject /Subtype /Image /Width %d /Height 10 /ColorSpace /DeviceGray"


def screen(data: bytes, facts: dict[str, object] | None = None, **more: object) -> Screened:
    return asyncio.run(security.screen(data, facts, **more))  # type: ignore[arg-type]


def page(more: bytes) -> bytes:
    return pdf({3: PAGE[:-2] + more + b" >>"})


def linked(header: bytes, action: bytes, *, listed: bool = True) -> bytes:
    """A page with a link, in object 4 with this header."""
    link = b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A %s >>" % action
    page_with_link = PAGE[:-2] + b" /Annots [4 0 R] >>"
    return pdf({3: page_with_link, 4: link}, headers={4: header}, free=() if listed else (4,))


def box(*sides: int, more: bytes = b"") -> bytes:
    numbers = b" ".join(b"%d" % side for side in sides)
    return pdf({3: b"<< /Type /Page /Parent 2 0 R /MediaBox [%s] %s >>" % (numbers, more)})


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PDF, "application/pdf"),
        (pdf(), "application/pdf"),
        (page(LINK % WEB), "application/pdf"),
        (catalog(b"/OpenAction [3 0 R /Fit]"), "application/pdf"),
        (catalog(b"/OpenAction << /S /GoTo /D [3 0 R /Fit] >>"), "application/pdf"),
        (catalog(FORM), "application/pdf"),
        (pdf({5: stream(b"/JavaScript and /JS << /S /Launch >>")}), "application/pdf"),
        (pdf({5: b"(/Launch \\) /JS (/Launch) ) % /Launch"}), "application/pdf"),
        (pdf({5: stream(b"an obj /JS endobj obj 7 0 R obj"), 6: b"(obj)"}), "application/pdf"),
        (pdf({5: stream(b"7 0 obj << >> endobj and /JS obj /Launch")}), "application/pdf"),
        (pdf({5: b"<< /Title (7 0 obj and obj) /A /B >> % obj"}), "application/pdf"),
        *((linked(header, WEB), "application/pdf") for header in HEADERS),
        (pdf({5: stream(zlib.compress(b"x" * 9), IMAGE % 10 + b" /Filter /FlateDecode")}),
         "application/pdf"),
        (pdf({5: b"<< /Type /StructElem /S /P /K 0 >>", 6: b"<< /EFont 5 0 R /S /S >>"}),
         "application/pdf"),
        (packed_pdf({5: WEB}, pack({5: WEB})), "application/pdf"),
        (updated(pdf(), {3: PAGE}), "application/pdf"),
        (box(0, 0, 2384, 3370), "application/pdf"),
        (pdf(trailer=b"/ID [<00> <00>] /Info 5 0 R").replace(b"\nstartxref", b"\r\nstartxref"),
         "application/pdf"),
        (png(), "image/png"),
        (png(more=chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"made by hand"))), "image/png"),
        (jpeg(), "image/jpeg"),
        (tiff(), "image/tiff"),
        (tiff(order=">"), "image/tiff"),
    ],
)  # fmt: skip
def test_what_is_sound_passes(data: bytes, kind: str) -> None:
    """CP-09: with its real type, size and hash; text about scripts is text."""
    found = screen(data, {"mime_type": kind, "size_bytes": len(data)})
    assert (found.media_type, found.size) == (kind, len(data))
    assert security.identify(data, {"sha256": found.sha256}) == found


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_file"),
        (b"MZ\x90\0" + b"\0" * 100, "unknown_type"),
        (b"<html><script>", "unknown_type"),
        (b"PK\x03\x04", "unknown_type"),
        (PDF[:-40], "damaged"),
        (pdf(trailer=b"/Encrypt 8 0 R"), "encrypted"),
        (pdf(trailer=b"/Encr#79pt 8 0 R"), "encrypted"),
        (pdf({2: b"<< /Type /Pages /Kids [2 0 R] >>"}), "damaged"),
        (pdf({2: b"<< /Type /Pages /Kids [] >>"}), "damaged"),
        # A header that the check cannot read, but another reader may.
        *((linked(header, WEB), "damaged") for header in UNCLEAR),
        (jpeg(65_000, 65_000), "too_large"),
        (jpeg()[:-2], "damaged"),
        (b"\xff\xd8\xff\xd9" + b"\0" * 20 + b"\xff\xd9", "damaged"),
        (tiff(50_000, 50_000), "too_large"),
        (tiff()[:12], "damaged"),
    ],
)
def test_what_is_not_sound_is_refused(data: bytes, code: str) -> None:
    """CP-09: with a code that stays."""
    with pytest.raises(Rejected) as error:
        screen(data)
    assert error.value.code == code


@pytest.mark.parametrize(
    "data",
    [
        catalog(b"/OpenAction " + SCRIPT),
        catalog(b"/OpenAction << /S /JS /JS (x) >>"),
        catalog(b"/OpenAction << /S /J#53 >>"),
        catalog(b"/OpenAction << /S /Java#53cript /#4a#53 (x) >>"),
        catalog(b"/OpenAction 5 0 R", {5: b"<< /S 6 0 R >>", 6: b"/JavaScript"}),
        catalog(b"/OpenAction << /S /Launch /F (cmd.exe) >>"),
        catalog(b"/OpenAction << /S /GoTo /D [3 0 R /Fit] /Next [<< /S /URI /URI (x) >>] >>"),
        catalog(b"/AA << /WC 5 0 R >>", {5: b"<< /S /URI /URI (http://example.com) >>"}),
        catalog(b"/Names << /EmbeddedFiles 9 0 R >>"),
        catalog(b"/Names << /JavaScript << /Names [(a) 9 0 R] >> >>"),
        catalog(b"/AcroForm << /XFA [(form) 9 0 R] >>"),
        catalog(b"/Collection << >>"),
        page(LINK % b"<< /S /GoToR /F (other.pdf) >>"),
        page(LINK % b"<< /S /SubmitForm /F (http://example.com) >>"),
        page(LINK % b"<< /S /ImportData /F (x) >>"),
        page(LINK % b"<< /S /Rendition >>"),
        page(b"/Annots [<< /Subtype /RichMedia /Rect [0 0 9 9] >>]"),
        page(b"/Annots [<< /Subtype /FileAttachment /Rect [0 0 9 9] >>]"),
        page(b"/Annots [<< /Subtype /3D /Rect [0 0 9 9] >>]"),
        pdf({5: b"<< /Type /Filespec /EF << /F 6 0 R >> >>"}),
        pdf({5: stream(b"x", b"/Type /EmbeddedFile")}),
        # An object that no table lists: a reader that repairs the file finds it.
        pdf({5: SCRIPT}).replace(b" 00000 n \ntrailer", b" 65535 f \ntrailer"),
        # Hidden from a reader that stops at what it does not know.
        pdf({5: b"<< /A stream\n /S /JavaScript >>"}),
        pdf({5: b"<< /A [ >> stream\n ] /S /JavaScript >>"}),
        pdf({5: b"<< /A endobj /S /JavaScript >>"}),
        pdf({5: b"<< /S /URI /S /JavaScript >>"}),
        updated(pdf(), {1: CATALOG[:-2] + b"/OpenAction 5 0 R >>", 5: SCRIPT}),
        updated(pdf({5: SCRIPT}), {5: b"<< >>"}),
        packed_pdf({5: SCRIPT}, pack({5: SCRIPT}), catalogue=b"/OpenAction 5 0 R"),
        packed_pdf({5: SCRIPT}, pack({5: SCRIPT}, mark=b"stream\r")),
        packed_pdf({5: SCRIPT}, pack({5: SCRIPT}, mark=b"stream\r\n")),
        packed_pdf(
            {5: SCRIPT},
            pack({5: SCRIPT}, head=b"/X (" + b"x" * 9000 + b") /Type /ObjStm /Filter /FlateDecode"),
        ),
        packed_pdf(
            {5: SCRIPT},
            pack({5: SCRIPT}, head=b"/Type /ObjStm /Filter [/FlateDecode /FlateDecode]"),
        ),
        packed_pdf({5: SCRIPT}, pack({5: SCRIPT}, head=b"/Type /Obj#53tm /Filter /FlateDecode")),
        packed_pdf({5: SCRIPT}, pack({5: SCRIPT}, head=b"/Filter /FlateDecode")),
        packed_pdf({5: b"<< /S /J#53 >>"}, pack({5: b"<< /S /J#53 >>"})),
        # A second stream of objects, which extends one that is harmless.
        pdf({8: pack({5: SCRIPT}), 9: pack({6: b"<< >>"}, head=b"/Type /ObjStm /Extends 8 0 R")}),
        *(linked(header, action) for header in HEADERS + UNCLEAR for action in ALIVE),
        *(linked(header, action, listed=False) for header in HEADERS + UNCLEAR for action in ALIVE),
        pdf({8: pack({5: SCRIPT})}, headers={8: b"8 %c\n0 obj"}),
        # Within a string, what looks like a header and hides the rest of the object.
        *(pdf({5: b"<< /T (1 0 obj % ) /A " + action + b" >>"}) for action in ALIVE),
        *(pdf({5: b"<< /T (1 0 obj % ) /A " + action + b" ] >>"}) for action in ALIVE),
    ],
)  # fmt: skip
def test_active_content_is_refused(data: bytes) -> None:
    """CP-09: in every way in which a reader could come upon it."""
    with pytest.raises(Rejected) as error:
        screen(data)
    assert error.value.code == "active_content"


@pytest.mark.parametrize(
    ("holder", "code"),
    [
        (pack({5: b"<< >>"}, head=b"/Type /ObjStm /Filter /Unheard"), "unreadable"),
        (pack({6: pack({7: SCRIPT})}, head=b"/Type /ObjStm"), "unreadable"),
        (pack({5: b"<< >>"}).replace(b"stream\nx\x9c", b"stream\n??"), "damaged"),
        (b"<< /Type /ObjStm /N 1 /First 4 >>", "unreadable"),
    ],
)
def test_objects_that_cannot_be_unpacked_are_refused(holder: bytes, code: str) -> None:
    with pytest.raises(Rejected) as error:
        screen(packed_pdf({5: b"<< >>"}, holder))
    assert error.value.code == code


@pytest.mark.parametrize(
    "data",
    [
        box(0, 0, 14_400, 14_400),
        box(14_400, 14_400, 0, 0),
        box(-7000, -7000, 7000, 7000),
        box(0, 0, 10**30, 1),
        box(0, 0, 7_201, 1),
        box(0, 0, 595, 842, more=b"/UserUnit 75"),
        box(0, 0, 595, 842, more=b"/CropBox [0 0 14400 14400]"),
        pdf({2: PAGES[:-2] + b" /MediaBox [0 0 14400 14400] >>", 3: b"<< /Type /Page >>"}),
        pdf({3: b"<< /Type /Page /MediaBox 5 0 R >>", 5: b"[0 0 6 0 R 14400]", 6: b"14400"}),
        # Each page may be as large, but not fifty of them.
        pdf({
            2: b"<< /Type /Pages /Kids [%s] /MediaBox [0 0 2384 3370] >>" % (b"3 0 R " * 20),
            3: b"<< /Type /Page >>",
        }),
        pdf({2: b"<< /Type /Pages /Kids [%s] >>" % (b"3 0 R " * 51)}),
        pdf({5: stream(b"", IMAGE % 10_000_000)}),
        png(100_000, 100_000),
        png(40_000, 10),
    ],
)  # fmt: skip
def test_what_fills_the_memory_of_the_rasteriser_is_refused(data: bytes) -> None:
    """A file of 332 bytes can have a page for which the rasteriser takes two gigabytes."""
    with pytest.raises(Rejected) as error:
        screen(data)
    assert error.value.code == "too_large"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (png()[:-5], "damaged"),
        *((png()[:size], "damaged") for size in range(8, len(png()), 7)),
        (png().replace(b"IDAT", b"IDAX"), "damaged"),
        (png()[:8] + b"\xff\xff\xff\xffIHDR" + png()[16:], "damaged"),
        (png(0, 5), "damaged"),
        (png().replace(b"\x08\0\0\0\0", b"\x07\0\0\0\0"), "damaged"),
        # More in it than its size says.
        (png(rows=b"\0" * 50_000_000), "damaged"),
        (png(more=chunk(b"zTXt", b"C\0\0" + zlib.compress(b"\0" * 70_000_000))), "too_large"),
        (png(tail=b"PK\x03\x04"), "trailing_data"),
    ],
)
def test_a_damaged_png_is_refused(data: bytes, code: str) -> None:
    """CP-09: wherever it is cut, it is a refusal and not an error of the check."""
    with pytest.raises(Rejected) as error:
        screen(data)
    assert error.value.code == code


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"mime_type": "application/pdf"}, "type_mismatch"),
        ({"size_bytes": 1}, "size_mismatch"),
        ({"sha256": "0" * 64}, "hash_mismatch"),
    ],
)
def test_the_claims_of_the_uploader_are_verified(facts: dict[str, object], code: str) -> None:
    with pytest.raises(Rejected) as error:
        screen(png(), facts)
    assert error.value.code == code


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that fills the memory when it is unpacked is refused before it does."""
    bomb = pdf({5: pack({6: b"(" + b"x" * 1_000_000 + b")"})})
    assert screen(bomb).kind == "pdf"
    with pytest.raises(Rejected, match="too large when it is unpacked"):
        screen(bomb, bounds=Bounds(inflated=10_000))
    with pytest.raises(Rejected, match="too large when it is unpacked"):
        screen(pdf({5: pack({6: b"(" + b"x" * 90_000_000 + b")"})}))
    monkeypatch.setattr(security, "LARGEST", 100)
    with pytest.raises(Rejected, match="the largest is 100"):
        screen(png(tail=b"x" * 100))


@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-1.4\n" + b"obj " * 250_000 + b"\n%%EOF\n",
        b"%PDF-1.4\n" + b"1 0 obj " * 125_000 + b"\n%%EOF\n",
        b"%PDF-1.4\n" + b"1 0 obj (" * 100_000 + b"\n%%EOF\n",
        b"%PDF-1.4\n" + b"1 0 obj <<" * 100_000 + b"\n%%EOF\n",
        pdf({5: b"[" * 100_000 + b"]" * 100_000}),
    ],
)  # fmt: skip
def test_a_document_that_is_hard_to_read_does_not_hold_up_the_worker(data: bytes) -> None:
    """The event loop turns while the child reads, and the child has a bound of CPU time."""

    async def both() -> tuple[int, BaseException | None]:
        work = asyncio.create_task(security.screen(data, limits=Limits(cpu=3)))
        turns = 0
        while not work.done():
            # A loop that is held up by the work itself does not come back here before its end.
            await asyncio.sleep(0.001)
            turns += 1
        return turns, work.exception()

    turns, problem = asyncio.run(both())
    assert turns > 1
    assert isinstance(problem, Rejected)
    assert problem.code in {"damaged", "unreadable", "over_limits"}


def test_the_reader_is_never_loaded_into_the_worker() -> None:
    """It reads what strangers have sent, so it belongs into the child alone."""
    code = (
        "import asyncio, sys\n"
        "from profiles.tests.clinical.flow.documents import PDF\n"
        "from trunkline_profiles.clinical import tasks\n"
        "from trunkline_profiles.clinical.handlers import security\n"
        "print(asyncio.run(security.screen(PDF)).kind, 'pypdf' in sys.modules)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert found.stdout.split() == ["pdf", "False"]


def test_a_missing_library_refuses_no_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """CP-70: the worker does not claim such jobs, and says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    services = tasks.Services(Folder(tmp_path), Tools())
    assert (
        "pip install 'trunkline-profiles[clinical]'"
        in tasks.unserved(services)["fast_queue_security"]
    )
    with pytest.raises(CannotRun, match=r"trunkline-profiles\[clinical\]"):
        screen(PDF)
    with pytest.raises(ProfileNeedsPackages) as needed:
        demo.run()
    assert "pip install 'trunkline-profiles[clinical]'" in str(needed.value.hint)


def test_what_this_installation_cannot_do_is_postponed(caplog: pytest.LogCaptureFixture) -> None:
    """Neither refused nor a failed attempt; the log says why."""
    ctx: Any = SimpleNamespace(log=logging.getLogger("test"), worker="w", tenant="p")
    with pytest.raises(Snooze), at_work(ctx):
        raise CannotRun("pypdf is not installed")
    assert "pypdf is not installed" in caplog.text


def test_a_child_that_does_not_start_refuses_no_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that cannot be imported, or no memory for the interpreter, is not the document."""
    (tmp_path / "pypdf").mkdir()
    (tmp_path / "pypdf" / "__init__.py").write_text("raise RuntimeError('half installed')\n")
    with monkeypatch.context() as patch:
        patch.setattr(security, "_folder_of_pypdf", lambda: str(tmp_path))
        with pytest.raises(CannotRun, match="half installed"):
            screen(PDF)
    with pytest.raises(CannotRun):
        screen(PDF, limits=Limits(memory=8))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    with pytest.raises(CannotRun, match="cannot be started"):
        screen(PDF)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "over_limits"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "unreadable"),
        ("while True: pass", "over_limits"),
        ("import time; time.sleep(600)", "over_limits"),
        ("import sys; sys.stdout.write('x' * 100_000); sys.stdout.flush()", "unreadable"),
        ("import sys; sys.exit(3)", "unreadable"),
        ("raise RuntimeError('broken')", "unreadable"),
        ("print('no verdict')", "unreadable"),
        ("bytearray(1 << 40)", "unreadable"),
    ],
)
def test_a_child_that_ends_badly_refuses_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, code: str
) -> None:
    """Killed, crashed, too slow or too large: final, and not a failed attempt."""
    program = tmp_path / "program.py"
    program.write_text(f"print('READY', flush=True)\n{script}\n")
    monkeypatch.setattr(examine_pdf, "__file__", str(program))
    with pytest.raises(Rejected) as error:
        screen(PDF, limits=Limits(cpu=2, wall=15.0 if "sleep" in script else 120.0, output=4096))
    assert error.value.code == code


def test_the_child_gets_limits_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP-78: limits before the import, no keys, no descriptors of the worker, no signals."""
    monkeypatch.setenv("TRUNKLINE_DSN", "postgresql://user:secret@host/db")
    program = tmp_path / "program.py"
    program.write_text(
        "import json, os, resource, signal\n"
        "print('READY')\n"
        "kinds = ('CPU', 'AS', 'FSIZE', 'CORE', 'NOFILE')\n"
        "found = {k: resource.getrlimit(getattr(resource, 'RLIMIT_' + k))[0] for k in kinds}\n"
        "found['environment'] = sorted(k for k in os.environ if k != 'LC_CTYPE')\n"
        "found['descriptors'] = sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1]\n"
        "found['ignored'] = signal.getsignal(signal.SIGTERM) == signal.SIG_IGN\n"
        "found['session'] = os.getsid(0) == os.getpid()\n"
        "print(json.dumps({'refused': 'test', 'message': json.dumps(found)}))\n"
    )
    monkeypatch.setattr(examine_pdf, "__file__", str(program))
    with (tmp_path / "open").open("w"), pytest.raises(Rejected) as error:
        screen(PDF, limits=Limits(cpu=7, memory=500, output=1 << 16))
    assert json.loads(str(error.value).partition(": ")[2]) == {
        "CPU": 7,
        "AS": 500 << 20,
        "FSIZE": 1 << 16,
        "CORE": 0,
        "NOFILE": 64,
        "environment": [],
        "descriptors": [0, 1, 2],
        "ignored": True,
        "session": True,
    }
