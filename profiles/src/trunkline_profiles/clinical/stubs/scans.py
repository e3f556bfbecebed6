"""Generates scanned pages: a page is typeset as a PDF and rasterised, as a scanner would do."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["report_lines", "scan", "typeset"]

# In points: A4, and a font size that is usual in faxes.
_WIDTH: Final = 595
_HEIGHT: Final = 842
_SIZE: Final = 14
_LEADING: Final = 22

_PATTERNS: Final = {"(": r"\(", ")": r"\)", "\\": r"\\"}


def typeset(lines: Sequence[str]) -> bytes:
    """A PDF of one page with these lines."""
    shown = "".join(f"({_escaped(line)}) Tj T*\n" for line in lines)
    content = f"BT /F1 {_SIZE} Tf {_LEADING} TL 60 {_HEIGHT - 80} Td\n{shown}ET".encode("latin-1")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents 5 0 R"
        b" /Resources << /Font << /F1 4 0 R >> >> >>" % (_WIDTH, _HEIGHT),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
    ]
    data = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer << /Size %d /Root 1 0 R >>\n" % (len(objects) + 1)
    data += b"startxref\n%d\n%%%%EOF\n" % table
    return bytes(data)


def scan(lines: Sequence[str], *, dots_per_inch: int = 150) -> bytes:
    """The page as a grey PNG; needs pdftoppm of poppler."""
    with tempfile.TemporaryDirectory(prefix="trunkline-scan-") as folder:
        source = Path(folder, "page.pdf")
        source.write_bytes(typeset(lines))
        command = ["pdftoppm", "-r", str(dots_per_inch), "-gray", "-png", "-singlefile"]
        subprocess.run([*command, source, Path(folder, "page")], check=True, timeout=60)
        return Path(folder, "page.png").read_bytes()


def report_lines(number: int) -> list[str]:
    """A laboratory report; the number determines the values."""
    return [
        "LABORATORY REPORT",
        f"Report number: {1000 + number}",
        f"Date: 2026-{1 + number % 12:02d}-{1 + number % 28:02d}",
        f"Haemoglobin: {12 + number % 5}.{number % 10} g/dL",
        f"Glucose: {80 + number % 40} mg/dL",
        f"Creatinine: 0.{6 + number % 4} mg/dL",
        "Medication: Metformin 500 mg",
        "Comment: values within the expected range",
    ]


def _escaped(text: str) -> str:
    return "".join(_PATTERNS.get(letter, letter) for letter in text)
