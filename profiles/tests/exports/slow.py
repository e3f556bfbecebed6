"""A renderer that never ends by itself, for tests of workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from trunkline_profiles.exports.handlers.options import Options
from trunkline_profiles.exports.handlers.problems import RenderStopped
from trunkline_profiles.exports.handlers.resume import Resume

__all__ = ["renderer"]


class Slow:
    """Renders until it is stopped."""

    name = "slow"

    def render(self, resume: Resume, options: Options, stopped: Callable[[], bool]) -> bytes:
        del resume, options
        while not stopped():
            time.sleep(0.02)
        raise RenderStopped

    def close(self) -> None:
        pass


def renderer(_environment: Mapping[str, str]) -> Slow:
    return Slow()
