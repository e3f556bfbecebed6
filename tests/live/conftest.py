"""The connections that tests of flow control use."""

from tests.flow.conftest import desk

__all__ = ["desk"]
