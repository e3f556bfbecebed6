"""The profile as a separate application: ``trunkline worker trunkline_profiles.studio.app``.

Environment variables configure the adapters, see `handlers.adapters`. TRUNKLINE_STORE is where the
files go. A worker does not serve task types whose adapter is missing, and logs them when it starts.
"""

from __future__ import annotations

import os

from trunkline import Trunkline
from trunkline_profiles.studio.handlers.adapters import adapters
from trunkline_profiles.studio.tasks import Services, build

__all__ = ["app"]

app = Trunkline()
build(app, Services(adapters(os.environ), app.open_store))
