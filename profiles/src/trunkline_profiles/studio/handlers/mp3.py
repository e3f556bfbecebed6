"""Duration and bit rate of an MP3, read from its frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trunkline_profiles.studio.handlers.problems import StudioProblem

__all__ = ["Sound", "measure"]

# Kilobits per second by the index in the header: of MPEG 1, and of MPEG 2 and 2.5.
_RATES: Final = {
    3: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_SAMPLES_PER_SECOND: Final = {
    3: (44100, 48000, 32000),
    2: (22050, 24000, 16000),
    0: (11025, 12000, 8000),
}
_LAYER_3: Final = 1


@dataclass(frozen=True, slots=True)
class Sound:
    """What the frames say."""

    duration: float
    frames: int
    # Kilobits per second; one number if the rate is constant.
    bit_rates: frozenset[int]
    samples_per_second: int


def measure(content: bytes) -> Sound:
    """Read every frame; raise if the bytes are anything else than whole frames."""
    place = frames = 0
    duration = 0.0
    rates: set[int] = set()
    samples = 0
    while place < len(content):
        frame = _frame(content, place)
        place += frame.size
        frames += 1
        duration += frame.duration
        rates.add(frame.bit_rate)
        samples = frame.samples_per_second
    if place != len(content) or not frames:
        raise StudioProblem("The MP3 is empty or ends within a frame")
    return Sound(duration, frames, frozenset(rates), samples)


@dataclass(frozen=True, slots=True)
class _Frame:
    size: int
    duration: float
    bit_rate: int
    samples_per_second: int


def _frame(content: bytes, place: int) -> _Frame:
    header = int.from_bytes(content[place : place + 4], "big")
    version, layer = header >> 19 & 3, header >> 17 & 3
    rate, speed, padding = header >> 12 & 15, header >> 10 & 3, header >> 9 & 1
    sound = header >> 21 == 0x7FF and layer == _LAYER_3 and version != 1
    if not sound or rate in {0, 15} or speed == 3:
        raise StudioProblem(f"There is no MP3 frame at byte {place}")
    kilobits = _RATES[3 if version == 3 else 2][rate]
    per_second = _SAMPLES_PER_SECOND[version][speed]
    samples = 1152 if version == 3 else 576
    size = samples // 8 * kilobits * 1000 // per_second + padding
    return _Frame(size, samples / per_second, kilobits, per_second)
