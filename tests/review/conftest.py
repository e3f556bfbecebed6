"""Defects that a review found, each once more. On the newest server, as the tests of the worker."""

from tests.chaos.conftest import scene, server
from tests.worker.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call", "scene", "server"]
