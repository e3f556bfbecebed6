"""Escape untrusted text for terminals and for logs that are read line by line."""

import re
from typing import Final

__all__ = ["UNSAFE", "escaped", "escaped_json", "escaped_lines", "unsigned"]

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
# Ours, and those of S3, Google Cloud Storage and Azure.
_SIGNATURE: Final = re.compile(
    r"((?:[?&]|\b)(?:X-Amz-|X-Goog-)?(?:signature|sig)=)[\w%.~+/=-]+", re.IGNORECASE
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text: str) -> str:
    """Return one line of text with unsafe characters escaped, and without signatures of links."""
    return _UNSAFE.sub(_escape, unsigned(text))


def unsigned(text: str) -> str:
    """Return text in which signed links to files no longer work."""
    return _SIGNATURE.sub(r"\1…", text) if "ignature=" in text or "sig=" in text else text


def escaped_lines(text: str, indent: str = "") -> str:
    """Return several lines of text with unsafe characters escaped, each line indented."""
    return "\n".join(indent + escaped(line) for line in text.split("\n"))


def escaped_json(document: str) -> str:
    """Return a JSON document from json.dumps with unsafe characters escaped.

    They occur only inside strings, so each can be replaced with an escape.
    """
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", document)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
