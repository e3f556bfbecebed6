"""One response, taken apart as its bytes arrive. No input or output happens here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

__all__ = ["Headers", "Incoming", "MalformedResponse"]

_LONGEST_HEAD: Final = 65_536
_LONGEST_LINE: Final = 4_096
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) +([1-9][0-9]{2})(?: (.*))?", re.DOTALL)
_CHUNK_SIZE: Final = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_DIGITS: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_WITHOUT_BODY: Final = frozenset({204, 304})
_FIRST_FINAL: Final = 200
_SWITCHING: Final = 101


class MalformedResponse(ValueError):
    """What arrived is no response of HTTP/1.1."""


class Headers(Mapping[str, str]):
    """Headers by name, in any case; what was sent several times is joined by commas."""

    __slots__ = ("_fields",)

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def add(self, name: str, value: str) -> None:
        """Take one more in."""
        name = name.lower()
        before = self._fields.get(name)
        self._fields[name] = value if before is None else f"{before}, {value}"

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"Headers({self._fields!r})"


class Incoming:
    """Fed until `done`; b"" is the end of the connection."""

    def __init__(self, method: str, most: int) -> None:
        self._method = method
        self._most = most
        self._buffer = bytearray()
        self._step: Callable[[], bool] = self._head
        self._left = 0
        self._ended = False
        self._received = 0
        self._keeps = False
        self.body = bytearray()
        self.status = 0
        self.reason = ""
        self.headers = Headers()
        self.done = False

    @property
    def wire_bytes(self) -> int:
        """Bytes received for this response: headers, body and framing, as providers bill them."""
        return self._received - (len(self._buffer) if self.done else 0)

    @property
    def keeps_open(self) -> bool:
        """Whether the connection can be used for another request."""
        # What nobody asked for may be an answer to a request that was never sent.
        return self.done and not (self._ended or self._buffer) and self._keeps

    def feed(self, data: bytes) -> None:
        """Take in what arrived."""
        if self.done:
            raise MalformedResponse("data after the end of the response")
        self._ended = not data
        self._received += len(data)
        self._buffer += data
        # Each step says whether another one may follow.
        while self._step():
            pass
        if self._ended and not self.done:
            raise MalformedResponse("the connection ended in the middle of the response")

    def _head(self) -> bool:
        end = _end_of_head(self._buffer)
        if end < 0 and len(self._buffer) <= _LONGEST_HEAD:
            return False
        if not 0 <= end <= _LONGEST_HEAD:
            raise MalformedResponse("its headers are too long")
        first, *lines = bytes(self._buffer[:end]).replace(b"\r\n", b"\n").strip(b"\n").split(b"\n")
        del self._buffer[:end]
        match = _STATUS_LINE.fullmatch(first.strip())
        if match is None:
            raise MalformedResponse("it does not begin with a status line")
        self.status = int(match[2])
        self.reason = (match[3] or b"").decode("latin-1").strip()
        self.headers = _headers(lines)
        if self.status < _FIRST_FINAL and self.status != _SWITCHING:
            # An interim answer; the real one follows.
            return True
        self._keeps = self._is_kept(minor=match[1])
        self._frame()
        return not self.done

    def _is_kept(self, minor: bytes) -> bool:
        words = {word.strip() for word in self.headers.get("connection", "").lower().split(",")}
        if self.status == _SWITCHING or "close" in words:
            return False
        return minor == b"1" or "keep-alive" in words

    def _frame(self) -> None:
        """How the end of the body is told."""
        coding = self.headers.get("transfer-encoding")
        length = self.headers.get("content-length")
        if self._method == "HEAD" or self.status < _FIRST_FINAL or self.status in _WITHOUT_BODY:
            self.done = True
        elif coding is not None:
            if coding.strip().lower() != "chunked":
                raise MalformedResponse("its transfer encoding is not chunked")
            # Two ways to tell the length are an attempt to confuse somebody on the way.
            self._keeps = self._keeps and length is None
            self._step = self._chunk_size
        elif length is not None:
            self._left = _content_length(length)
            if self._left > self._most:
                raise MalformedResponse("its body is too large")
            self._step = self._fixed
        else:
            self._keeps = False
            self._step = self._until_close

    def _take(self, count: int) -> None:
        self.body += self._buffer[:count]
        del self._buffer[:count]
        if len(self.body) > self._most:
            raise MalformedResponse("its body is too large")

    def _fixed(self) -> bool:
        count = min(self._left, len(self._buffer))
        self._take(count)
        self._left -= count
        self.done = self._left == 0
        return False

    def _until_close(self) -> bool:
        self._take(len(self._buffer))
        self.done = self._ended
        return False

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\n")
        if end < 0 and len(self._buffer) <= _LONGEST_LINE:
            return None
        if not 0 <= end <= _LONGEST_LINE:
            raise MalformedResponse("a line of its body is too long")
        line = bytes(self._buffer[:end]).strip()
        del self._buffer[: end + 1]
        return line

    def _chunk_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise MalformedResponse("the size of a chunk is no number")
        self._left = int(match[1], 16)
        if len(self.body) + self._left > self._most:
            raise MalformedResponse("its body is too large")
        self._step = self._chunk if self._left else self._trailer
        return True

    def _chunk(self) -> bool:
        count = min(self._left, len(self._buffer))
        self._take(count)
        self._left -= count
        if self._left:
            return False
        self._step = self._chunk_end
        return True

    def _chunk_end(self) -> bool:
        line = self._line()
        if line:
            raise MalformedResponse("a chunk is longer than its size")
        if line is None:
            return False
        self._step = self._chunk_size
        return True

    def _trailer(self) -> bool:
        line = self._line()
        self.done = line == b""
        return bool(line)


def _end_of_head(buffer: bytearray) -> int:
    """Where the empty line ends; some end lines without a carriage return."""
    ends = [
        found + len(mark)
        for mark in (b"\r\n\r\n", b"\n\n")
        if (found := buffer.find(mark, 0, _LONGEST_HEAD + len(mark))) >= 0
    ]
    return min(ends, default=-1)


def _headers(lines: list[bytes]) -> Headers:
    found = Headers()
    unfolded: list[str] = []
    for line in lines:
        if line[:1] in {b" ", b"\t"} and unfolded:
            unfolded[-1] += " " + line.decode("latin-1").strip()
        else:
            unfolded.append(line.decode("latin-1"))
    for text in unfolded:
        name, colon, value = text.partition(":")
        # A line that is none says nothing.
        if colon and name.strip():
            found.add(name.strip(), value.strip())
    return found


def _content_length(text: str) -> int:
    lengths = {one.strip() for one in text.split(",")}
    length = lengths.pop()
    if lengths or not _DIGITS.fullmatch(length):
        raise MalformedResponse("its content length is no number")
    return int(length)
