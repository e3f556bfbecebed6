"""Escape untrusted text for terminals and for logs that are read line by line."""

import re
from typing import Final

__all__ = ["UNSAFE", "escaped", "escaped_json", "escaped_lines"]

# Control characters (C0, DEL, C1), line and paragraph separators, characters that change the
# direction of text, and halves of surrogate pairs, which no stream can encode.
UNSAFE: Final = (
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
)

_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text: str) -> str:
    """Return one line of text with unsafe characters escaped."""
    return _UNSAFE.sub(_escape, text)


def escaped_lines(text: str, indent: str = "") -> str:
    """Return several lines of text with unsafe characters escaped, each line indented."""
    return "\n".join(indent + escaped(line) for line in text.split("\n"))


def escaped_json(document: str) -> str:
    """Return a JSON document from json.dumps with unsafe characters escaped.

    They occur only inside strings, so each can be replaced with an escape.
    """
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", document)


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
