"""Names of artifacts: which are allowed, what type they suggest, how they are sent to a browser."""

from __future__ import annotations

import mimetypes
import unicodedata
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from trunkline.errors import InvalidArtifact

__all__ = [
    "INLINE_TYPES",
    "check_name",
    "content_disposition",
    "content_type_of",
    "entry_names",
    "is_safe_path",
    "is_safe_to_send",
]

_LONGEST: Final = 200
# A browser may show these itself. HTML and SVG run scripts, so they are only ever downloaded.
INLINE_TYPES: Final = frozenset({
    "application/pdf",
    "audio/aac", "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav", "audio/webm",
    "image/avif", "image/gif", "image/jpeg", "image/png", "image/webp",
})  # fmt: skip
# What the tables of the operating system lack or disagree about.
_TYPES: Final = {
    ".flac": "audio/flac",
    ".json": "application/json",
    ".m4a": "audio/mp4",
    ".md": "text/markdown",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".pdf": "application/pdf",
    ".wav": "audio/wav",
    ".webp": "image/webp",
    ".zip": "application/zip",
}
_UNKNOWN: Final = "application/octet-stream"
# Windows reserves these names, with any extension.
_RESERVED: Final = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{device}{number}" for device in ("com", "lpt") for number in "123456789¹²³"}
)
_FORBIDDEN: Final = frozenset('<>:"/\\|?*')


def check_name(name: str) -> None:
    """Refuse a name that could leave its folder, or that cannot be shown."""
    problem = None
    if not name:
        problem = "must not be empty"
    elif len(name) > _LONGEST:
        problem = f"must have at most {_LONGEST} characters"
    elif "/" in name or "\\" in name:
        problem = "must not contain separators of folders"
    elif name.strip(". ") == "":
        problem = "must not consist of dots and spaces"
    elif any(_is_invisible(character) for character in name):
        problem = "must not contain control characters"
    if problem is not None:
        raise InvalidArtifact(
            "artifact is not valid",
            hint="The detail names the argument and what it must be.",
            detail={"argument": "name", "name": ascii(name)[:300], "rule": problem},
        )


def content_type_of(name: str) -> str:
    """Return the content type that a name suggests."""
    extension = f".{name.rpartition('.')[2].lower()}" if "." in name else ""
    return _TYPES.get(extension) or mimetypes.guess_type(name, strict=False)[0] or _UNKNOWN


def content_disposition(filename: str, content_type: str | None) -> str:
    """Return the header: shown by the browser if that is safe, with the name to save it under."""
    kind = "inline" if _plain_type(content_type) in INLINE_TYPES else "attachment"
    plain = "".join(
        character if character.isascii() and character not in '"\\%' else "_"
        for character in filename
        if not _is_invisible(character)
    )
    encoded = quote(filename.encode("utf-8", "replace"), safe="")
    extended = "" if plain == filename else f"; filename*=UTF-8''{encoded}"
    return f'{kind}; filename="{plain}"{extended}'


def is_safe_to_send(content_type: str | None, disposition: str | None) -> bool:
    """Return whether a browser that gets a file with these headers runs no scripts in it."""
    kind = (disposition or "").partition(";")[0].strip().lower()
    return kind == "attachment" or _plain_type(content_type) in INLINE_TYPES


def is_safe_path(path: str) -> bool:
    """Return whether a path stays inside of its store, and names no hidden file."""
    parts = path.split("/")
    return (
        0 < len(path) <= 1000
        and all(part and not part.startswith(".") and "\\" not in part for part in parts)
        and not any(_is_invisible(character) for character in path)
    )


def entry_names(names: Iterable[str]) -> list[str]:
    """Return a safe name for each, all different on every file system, in the same order."""
    taken: set[str] = set()
    result = []
    for name in names:
        stem, extension = _split(_portable(name))
        candidate, number = stem + extension, 1
        while (key := unicodedata.normalize("NFKC", candidate).casefold()) in taken:
            number += 1
            candidate = f"{stem} ({number}){extension}"
        taken.add(key)
        result.append(candidate)
    return result


def _portable(name: str) -> str:
    text = unicodedata.normalize("NFC", name).encode("utf-8", "replace").decode()
    text = "".join(
        "_" if character in _FORBIDDEN or _is_invisible(character) else character
        for character in text
    )
    # Windows drops dots and spaces at the end; a dot at the beginning hides a file.
    text = text.strip(". ") or "file"
    stem, extension = _split(text)
    if stem.split(".")[0].rstrip().casefold() in _RESERVED:
        stem = f"_{stem}"
    while len((stem + extension).encode()) > _LONGEST:
        stem = stem[:-1] if len(stem) > 1 else stem
        extension = extension if len(stem) > 1 else extension[:20]
    return stem.rstrip() + extension


def _split(name: str) -> tuple[str, str]:
    stem, dot, extension = name.rpartition(".")
    return (stem, dot + extension) if stem and len(extension) <= 20 else (name, "")


def _plain_type(content_type: str | None) -> str:
    return (content_type or "").partition(";")[0].strip().lower()


def _is_invisible(character: str) -> bool:
    # Control and format characters (line ends, reversed writing), surrogates, line separators.
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
