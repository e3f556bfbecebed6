"""Speech: eSpeak NG reads a chapter, and LAME encodes it while it speaks. No WAV exists anywhere.

eSpeak has one voice per process and is not safe for threads, so texts are read one after the other;
both libraries are called without the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from trunkline_profiles.studio.handlers.chapter import Chapter
from trunkline_profiles.studio.handlers.problems import StudioProblem

__all__ = ["BIT_RATE", "EspeakSpeaker", "Speaker"]

BIT_RATE: Final = 128

_SYNCHRONOUS: Final = 2
_DONT_EXIT: Final = 0x8000
_UTF8: Final = 1
_OK: Final = 0
_Samples: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


class Speaker(Protocol):
    """An adapter for a speech engine."""

    def speak(self, chapter: Chapter, stop: Callable[[], bool]) -> bytes:
        """Return an MP3 of 128 kbit/s; end early when ``stop`` returns true."""
        ...


class EspeakSpeaker:
    """eSpeak NG and LAME, both from wheels."""

    _lock: Final = threading.Lock()
    _library: Any = None
    _samples_per_second = 0

    def __init__(self, voice: str = "en-us") -> None:
        self._voice = voice

    def speak(self, chapter: Chapter, stop: Callable[[], bool]) -> bytes:
        """Read the title and the paragraphs."""
        with self._lock:
            self._open()
            if self._library.espeak_SetVoiceByName(self._voice.encode()) != _OK:
                raise StudioProblem(f"eSpeak has no voice {self._voice!r}")
            return self._spoken([chapter.title, *chapter.paragraphs], stop)

    @classmethod
    def _open(cls) -> None:
        if cls._library is not None:
            return
        import espeakng_loader  # noqa: PLC0415 - 21 MB, and only audio workers need it

        library = ctypes.CDLL(espeakng_loader.get_library_path())
        data = espeakng_loader.get_data_path().encode()
        found = library.espeak_Initialize(_SYNCHRONOUS, 0, data, _DONT_EXIT)
        if found <= 0:
            raise StudioProblem(f"eSpeak does not start: {found}")
        cls._library, cls._samples_per_second = library, found

    def _spoken(self, texts: Sequence[str], stop: Callable[[], bool]) -> bytes:
        import lameenc  # noqa: PLC0415 - as above

        encoder = lameenc.Encoder()
        encoder.silence()
        encoder.set_bit_rate(BIT_RATE)
        encoder.set_in_sample_rate(self._samples_per_second)
        encoder.set_channels(1)
        encoder.set_quality(7)
        parts: list[bytes] = []
        errors: list[Exception] = []

        def receive(samples: Any, count: int, _: Any) -> int:
            # An exception cannot pass through the library.
            try:
                if samples and count > 0:
                    parts.append(bytes(encoder.encode(ctypes.string_at(samples, 2 * count))))
                return 1 if stop() else 0
            except Exception as error:  # noqa: BLE001 - raised again below
                errors.append(error)
                return 1

        callback = _Samples(receive)
        self._library.espeak_SetSynthCallback(callback)
        for text in texts:
            data = text.replace("\0", " ").encode() + b"\0"
            self._library.espeak_Synth(data, ctypes.c_size_t(len(data)), 0, 1, 0, _UTF8, None, None)
            if errors:
                raise errors[0]
            if stop():
                raise StudioProblem("stopped while speaking")
        parts.append(bytes(encoder.flush()))
        return b"".join(parts)
