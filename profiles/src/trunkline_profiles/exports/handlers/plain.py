"""Pages without a browser: the résumé set by fpdf2, in pure Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from trunkline_profiles.exports.handlers.options import Options
from trunkline_profiles.exports.handlers.problems import RenderStopped
from trunkline_profiles.exports.handlers.resume import Resume, Section

if TYPE_CHECKING:
    from fpdf import FPDF

__all__ = ["PlainRenderer"]

# Family, size of the text, and whether the head is centred.
_STYLES: Final = {
    "minimal": ("helvetica", 10.5, False),
    "classic": ("times", 11.0, True),
    "compact": ("helvetica", 9.0, False),
}
_LONG_WORD: Final = 60
_ACCENT: Final = {True: (31, 78, 121), False: (68, 68, 68)}


class PlainRenderer:
    """Sets the text only. Its fonts have Latin letters; others become question marks."""

    name = "plain"

    def render(self, resume: Resume, options: Options, stopped: Callable[[], bool]) -> bytes:
        """Return the pages."""
        from fpdf import FPDF  # noqa: PLC0415 - an extra, and only hosts without a browser need it

        pdf = FPDF(unit="in", format=options.paper)
        pdf.set_margins(options.left, options.top, options.right)
        pdf.set_auto_page_break(True, options.bottom)
        pdf.add_page()
        page = _Page(pdf, options)
        page.head(resume)
        for section in resume.sections:
            if stopped():
                raise RenderStopped
            page.section(section)
        return bytes(pdf.output())

    def close(self) -> None:
        """Nothing stays open."""


class _Page:
    def __init__(self, pdf: FPDF, options: Options) -> None:
        self._pdf = pdf
        self._family, self._size, self._is_centred = _STYLES[options.template]
        self._accent = _ACCENT[options.color]

    def head(self, resume: Resume) -> None:
        align = "C" if self._is_centred else "L"
        self._write(resume.name, 2.0, "B", align=align)
        self._write(resume.headline, 1.0, accent=True, align=align)
        self._write(" | ".join(resume.contact), 0.9, align=align)
        for paragraph in resume.summary:
            self._space(0.5)
            self._write(paragraph, 1.0)

    def section(self, section: Section) -> None:
        self._space(0.8)
        self._write(section.title, 1.15, "B", accent=True)
        for entry in section.entries:
            self._space(0.3)
            self._write("  ".join(filter(None, (entry.title, entry.period))), 1.0, "B")
            self._write(entry.place, 1.0, "I")
            for paragraph in entry.paragraphs:
                self._write(paragraph, 1.0)

    def _write(
        self, text: str, scale: float, style: str = "", *, accent: bool = False, align: str = "L"
    ) -> None:
        if not text:
            return
        from fpdf.enums import WrapMode  # noqa: PLC0415 - with the extra

        size = self._size * scale
        self._pdf.set_font(self._family, style, size)
        self._pdf.set_text_color(*(self._accent if accent else (26, 26, 26)))
        printable = text.encode("latin-1", "replace").decode("latin-1")
        # A word that is wider than the page has to break somewhere.
        is_long = max(map(len, printable.split()), default=0) > _LONG_WORD
        self._pdf.multi_cell(
            0,
            size * 1.4 / 72,
            printable,
            align=align,
            new_x="LMARGIN",
            new_y="NEXT",
            wrapmode=WrapMode.CHAR if is_long else WrapMode.WORD,
        )

    def _space(self, lines: float) -> None:
        self._pdf.ln(self._size * 1.4 / 72 * lines)
