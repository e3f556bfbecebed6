"""The profile as a separate application: ``trunkline worker trunkline_profiles.exports.app``.

`handlers.renderers` describes the variables that choose the renderer. TRUNKLINE_STORE is where the
files go.
"""

from __future__ import annotations

import atexit
import os

from trunkline import Trunkline
from trunkline_profiles.exports.handlers.renderers import renderer
from trunkline_profiles.exports.tasks import Services, build

__all__ = ["app"]

app = Trunkline()
_renderer = renderer(os.environ)
atexit.register(_renderer.close)
build(app, Services(_renderer))
