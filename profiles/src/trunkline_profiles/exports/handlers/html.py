"""The templates: a résumé as one HTML document without scripts, links or outside resources."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from trunkline_profiles.exports.handlers.options import Options
from trunkline_profiles.exports.handlers.resume import Entry, Resume, Section

__all__ = ["TEMPLATES", "as_html"]

_BASE: Final = """
* { box-sizing: border-box; }
html { -webkit-print-color-adjust: exact; }
body { margin: 0; color: #1a1a1a; overflow-wrap: anywhere; }
h1, h2, h3, p { margin: 0; }
h2, h3 { break-after: avoid; }
.entry { break-inside: avoid; }
.contact span + span::before { content: " · "; }
.period { float: right; margin-left: 1em; }
"""
TEMPLATES: Final = {
    "minimal": """
body { font: 10.5pt/1.45 "Liberation Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 22pt; font-weight: 600; }
.headline, h2 { color: var(--accent); }
h2 { font-size: 11pt; text-transform: uppercase; letter-spacing: .08em; margin: 16pt 0 6pt; }
h3 { font-size: 10.5pt; }
.entry { margin-bottom: 8pt; }
.summary { margin-top: 10pt; }
""",
    "classic": """
body { font: 11pt/1.4 "Liberation Serif", "DejaVu Serif", serif; }
header { text-align: center; border-bottom: 1pt solid var(--accent); padding-bottom: 8pt; }
h1 { font-size: 24pt; font-weight: 400; }
h2 { font-size: 13pt; color: var(--accent); border-bottom: .5pt solid #999; margin: 14pt 0 6pt; }
h3 { font-size: 11pt; }
.entry { margin-bottom: 9pt; }
.summary { margin-top: 10pt; font-style: italic; }
""",
    "compact": """
body { font: 9pt/1.3 "Liberation Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 16pt; }
h2 { font-size: 9.5pt; margin: 8pt 0 4pt; padding: 1pt 4pt; }
h2 { background: var(--accent); color: #fff; }
h3 { font-size: 9pt; }
.entry { margin-bottom: 4pt; }
.summary { margin-top: 5pt; }
""",
}
_ACCENT: Final = {True: "#1f4e79", False: "#444444"}
# Nothing may be loaded, from nowhere; the renderer blocks requests as well.
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)


def as_html(resume: Resume, options: Options) -> str:
    """Return the document; every text of the résumé is escaped."""
    style = f":root {{ --accent: {_ACCENT[options.color]}; }}{_BASE}{TEMPLATES[options.template]}"
    return (
        "<!doctype html><html><head>"
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(resume.title)}</title><style>{style}</style></head><body>"
        f"<header><h1>{escape(resume.name)}</h1>{_line('headline', resume.headline)}"
        f"{_contact(resume.contact)}</header>"
        f"{_block('summary', resume.summary)}"
        f"{''.join(map(_section, resume.sections))}</body></html>"
    )


def _contact(lines: Iterable[str]) -> str:
    spans = "".join(f"<span>{escape(line)}</span>" for line in lines)
    return f'<p class="contact">{spans}</p>' if spans else ""


def _section(section: Section) -> str:
    title = f"<h2>{escape(section.title)}</h2>" if section.title else ""
    return f"<section>{title}{''.join(map(_entry, section.entries))}</section>"


def _entry(entry: Entry) -> str:
    period = f'<span class="period">{escape(entry.period)}</span>' if entry.period else ""
    title = f"<h3>{period}{escape(entry.title)}</h3>" if entry.title or period else ""
    return (
        f'<div class="entry">{title}{_line("place", entry.place)}'
        f"{_block('text', entry.paragraphs)}</div>"
    )


def _line(name: str, text: str) -> str:
    return f'<p class="{name}">{escape(text)}</p>' if text else ""


def _block(name: str, paragraphs: Iterable[str]) -> str:
    return "".join(f'<p class="{name}">{escape(one)}</p>' for one in paragraphs)
