"""Pages: real ones, measured, and harmless whatever a résumé says."""

import http.server
import io
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from profiles.tests.exports.conftest import DATA, Exports
from trunkline.errors import ProfileError
from trunkline_profiles.exports.handlers import memory
from trunkline_profiles.exports.handlers.chromium import ChromiumRenderer
from trunkline_profiles.exports.handlers.html import TEMPLATES, as_html
from trunkline_profiles.exports.handlers.options import PAPER, Options
from trunkline_profiles.exports.handlers.pages import finished
from trunkline_profiles.exports.handlers.plain import PlainRenderer
from trunkline_profiles.exports.handlers.problems import (
    BadDocument,
    RenderFailed,
    RenderStopped,
    RenderTimeout,
    RenderTooLarge,
)
from trunkline_profiles.exports.handlers.renderers import find_chromium, renderer
from trunkline_profiles.exports.handlers.resume import Resume, read_resume

CHROMIUM = find_chromium({})
assert CHROMIUM is not None, "tools/system_packages.sh installs Chromium"


def going_on() -> bool:
    return False


def resume(**data: Any) -> Resume:
    return read_resume("CV", "Ann", DATA | data)


def text_of(content: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages)


@pytest.fixture(scope="module")
def chromium() -> Iterator[ChromiumRenderer]:
    made = ChromiumRenderer(str(CHROMIUM), content_seconds=120)
    yield made
    made.close()


@pytest.fixture(scope="module", params=["chromium", "plain"])
def each(request: pytest.FixtureRequest, chromium: ChromiumRenderer) -> Any:
    return chromium if request.param == "chromium" else PlainRenderer()


@pytest.mark.parametrize("template", TEMPLATES)
def test_ex_25_pages_and_size_are_measured(each: Any, template: str) -> None:
    """EX-03, EX-11, EX-25: by both renderers, for each template."""
    short = each.render(resume(), Options(template=template), going_on)
    assert finished(short, title="CV", author="Ann").number == 1
    entries = [{"title": f"Post {n}", "text": "All kinds of work. " * 40} for n in range(30)]
    long = each.render(
        resume(sections=[{"title": "Work", "entries": entries}]),
        Options(template=template),
        going_on,
    )
    pages = finished(long, title="CV", author="Ann")
    assert pages.number == len(PdfReader(io.BytesIO(pages.content)).pages) > 2
    assert "Post 29" in text_of(pages.content)


@pytest.mark.parametrize("size", PAPER)
def test_ex_11_paper_and_margins_are_those_of_the_options(each: Any, size: str) -> None:
    """EX-11, EX-90: in inches."""
    options = Options(page_size=size, left=2, right=2, top=0, bottom=0, quality="draft")
    page = PdfReader(io.BytesIO(each.render(resume(), options, going_on))).pages[0]
    found = (float(page.mediabox.width) / 72, float(page.mediabox.height) / 72)
    assert found == pytest.approx(PAPER[size], abs=0.03)


def test_ex_11_grayscale_has_no_colour(chromium: ChromiumRenderer) -> None:
    assert "#1f4e79" in as_html(resume(), Options())
    assert "#1f4e79" not in as_html(resume(), Options(color=False))


def test_ex_24_the_file_says_whose_it_is(each: Any) -> None:
    """EX-24: title, author, subject, keywords and creator."""
    pages = finished(each.render(resume(), Options(), going_on), title="My CV", author="Ann")
    found = PdfReader(io.BytesIO(pages.content)).metadata
    assert found is not None
    assert (found.title, found.author, found.subject) == ("My CV", "Ann", "Resume")
    assert (found.get("/Keywords"), found.creator) == ("", "Trunkline")


HOSTILE = (
    '<script>document.title = "owned"</script>',
    '<iframe src="file:///etc/passwd"></iframe>',
    '<img src="http://169.254.169.254/latest/meta-data/">',
    '"><object data="file:///etc/passwd"></object>',
    "{{7*7}} ${7*7} <% x %>",
    "\x00\x1b[31m\u202eevil",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_ex_70_hostile_text_is_text(each: Any, text: str) -> None:
    """EX-70: in every field; it is printed, and nothing is loaded or run."""
    entry = {"title": text, "place": text, "period": text, "text": text}
    hostile = read_resume(
        text,
        text,
        {
            "headline": text,
            "contact": [text],
            "summary": text,
            "sections": [{"title": text, "entries": [entry]}],
        },
    )
    content = each.render(hostile, Options(), going_on)
    printed = text_of(content)
    assert "root:" not in printed
    assert "owned" not in printed or "<script>" in printed.replace("\n", "")
    assert finished(content, title=text, author=text).number >= 1


class _Listener(http.server.BaseHTTPRequestHandler):
    hits: list[str]

    def do_GET(self) -> None:
        self.hits.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """A server of this machine that must not be reached."""
    hits: list[str] = []
    handler = type("Handler", (_Listener,), {"hits": hits})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", hits
    server.shutdown()
    server.server_close()


def test_ex_70_even_raw_markup_loads_and_runs_nothing(
    chromium: ChromiumRenderer, listener: tuple[str, list[str]], tmp_path: Path
) -> None:
    """The browser itself is closed, in case a template ever forgets to escape."""
    address, hits = listener
    secret = tmp_path / "secret.html"
    secret.write_text("SECRET OF A FILE")
    secret.chmod(0o644)
    loads = f"""
    <link rel=stylesheet href="{address}/style"><img src="{address}/image">
    <iframe src="{address}/frame"></iframe><iframe src="{secret.as_uri()}"></iframe>
    <object data="{secret.as_uri()}"></object><embed src="{address}/embed">
    <style>@import url({address}/import); body {{ background: url({address}/background) }}</style>
    <p>STILL HERE</p>
    """
    # Apart from the style sheets, because a script waits for those.
    runs = f"""
    <script>document.body.innerText = 'SCRIPT RAN'; fetch('{address}/fetch')</script>
    <img src=x onerror="document.body.innerText = 'SCRIPT RAN'">
    <iframe srcdoc="<script>parent.document.body.innerText = 'SCRIPT RAN'</script>"></iframe>
    <p>STILL HERE</p>
    """
    for html in (loads, runs):
        content, blocked = chromium.print(html, Options())
        printed = text_of(content)
        assert "STILL HERE" in printed
        assert "SCRIPT RAN" not in printed
        assert "SECRET" not in printed
        assert hits == []
        assert bool(blocked) is (html is loads)
    # The page that goes elsewhere may end the print; what counts is that it gets nowhere.
    with suppress(RenderFailed):
        chromium.print(f'<meta http-equiv="refresh" content="0;url={address}/refresh">', Options())
    assert hits == []


def test_ex_26_slow_content_is_a_retryable_failure() -> None:
    """EX-26, EX-73, EX-78: the browser is killed, and the next render gets another one."""
    made = ChromiumRenderer(str(CHROMIUM), content_seconds=0.0)
    try:
        with pytest.raises(RenderTimeout):
            made.render(resume(), Options(), going_on)
        assert made.processes == []
    finally:
        made.close()
    assert issubclass(RenderTimeout, RenderFailed)


def test_ex_22_a_browser_that_grows_is_killed() -> None:
    """EX-22, EX-79: the memory of its processes is bounded; ours is logged."""
    made = ChromiumRenderer(str(CHROMIUM), memory=1, content_seconds=120)
    try:
        with pytest.raises(RenderTooLarge):
            made.render(resume(summary="word " * 200_000), Options(), going_on)
        assert made.processes == []
    finally:
        made.close()
    assert memory.report([os.getpid()]) > 0


def test_ex_22_an_alert_is_raised_above_800_megabytes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EX-22, EX-79."""
    monkeypatch.setattr(memory, "private_bytes", lambda _: memory.ALERT // 2 + 1)
    memory.report([1])
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "heap" in record.getMessage()


def test_ex_35_a_render_stops_when_it_is_cancelled(each: Any) -> None:
    """EX-35: in the middle of the work."""
    with pytest.raises(RenderStopped):
        each.render(resume(), Options(), lambda: True)


def test_a_browser_is_kept_and_replaced() -> None:
    """EX-03: one start for several renders, and none of them for ever."""
    made = ChromiumRenderer(str(CHROMIUM), renders=2, content_seconds=120)
    try:
        made.render(resume(), Options(), going_on)
        (first,) = made.processes
        made.render(resume(), Options(), going_on)
        assert made.processes == []
        made.render(resume(), Options(), going_on)
        assert made.processes != [first]
    finally:
        made.close()
    assert made.processes == []


def test_the_browser_is_not_root_and_keeps_its_sandbox() -> None:
    made = ChromiumRenderer(str(CHROMIUM), content_seconds=120)
    try:
        made.render(resume(), Options(), going_on)
        (pid,) = made.processes
        status = Path(f"/proc/{pid}/status").read_text()
        assert (
            next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1] != "0"
        )
        commands = []
        for one in memory.children_of(pid):
            # Some of them end while we look.
            with suppress(OSError):
                commands.append(Path(f"/proc/{one}/cmdline").read_bytes().decode())
        assert not any("--no-sandbox" in command for command in commands)
        assert any("--type=renderer" in command for command in commands)
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"TRUNKLINE" not in environment
    finally:
        made.close()


def test_ex_33_a_document_without_end_is_refused() -> None:
    with pytest.raises(BadDocument):
        read_resume("CV", "", {"summary": "x" * 2_000_001})
    with pytest.raises(BadDocument):
        read_resume("CV", "", {"contact": ["x"] * 501})


@pytest.mark.parametrize(
    "data",
    [{}, {"sections": "x"}, {"sections": [1, None, {"entries": 7}]}, {"contact": {"a": 1}}],
)
def test_any_shape_of_data_becomes_pages(data: dict[str, Any]) -> None:
    content = PlainRenderer().render(read_resume("CV", "", data), Options(), going_on)
    assert finished(content, title="CV", author="").number == 1


def test_a_renderer_is_chosen_by_the_environment() -> None:
    assert renderer({}).name == "chromium"
    assert renderer({"TRUNKLINE_EXPORTS_RENDERER": "plain"}).name == "plain"
    for name in ("word", "no.such:thing"):
        with pytest.raises(ProfileError):
            renderer({"TRUNKLINE_EXPORTS_RENDERER": name})
    with pytest.raises(ProfileError):
        find_chromium({"TRUNKLINE_EXPORTS_CHROMIUM": "/no/such/program"})


def test_ex_55_names_of_files_are_safe(exports: Exports) -> None:
    """EX-55: from titles: no separators, no dots alone, no control characters."""
    cases = {
        "CV": "CV.pdf",
        "a/../b": "a-.-b.pdf",
        "../..": "export.pdf",
        "a\r\nSet-Cookie: x": "a-Set-Cookie- x.pdf",
        "\u202efdp.exe": "fdp.exe.pdf",
        "  .hidden ": "hidden.pdf",
        "x" * 200: "x" * 120 + ".pdf",
        "Lebenslauf Jürgen": "Lebenslauf Jürgen.pdf",
    }
    for title, name in cases.items():
        assert exports.owner.execute("select exports.file_name(%s)", (title,)).fetchone() == (name,)


def test_a_browser_starts_whatever_descriptors_are_open() -> None:
    """The pipes of the browser get the numbers 3 and 4, wherever they were before."""
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(40)]
    made = ChromiumRenderer(str(CHROMIUM), content_seconds=120)
    try:
        assert made.render(resume(), Options(), going_on).startswith(b"%PDF")
    finally:
        made.close()
        for descriptor in opened:
            os.close(descriptor)
