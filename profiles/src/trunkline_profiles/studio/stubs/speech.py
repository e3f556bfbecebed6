"""A speech engine that takes its time, as one behind a network does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from trunkline_profiles.studio.handlers.chapter import Chapter
from trunkline_profiles.studio.handlers.speech import EspeakSpeaker

__all__ = ["SlowSpeaker"]

_SECONDS: Final = 1.0


class SlowSpeaker(EspeakSpeaker):
    """The built-in engine, and a second of waiting: an adapter as a user would configure it."""

    def __init__(self, _: Mapping[str, str]) -> None:
        super().__init__()

    def speak(self, chapter: Chapter, stop: Callable[[], bool]) -> bytes:
        """Read a chapter, then wait."""
        sound = super().speak(chapter, stop)
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end and not stop():
            time.sleep(0.05)
        return sound
