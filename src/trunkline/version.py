"""The version of the package, in a module that every layer may import."""

from typing import Final

__all__ = ["__version__"]

__version__: Final = "0.1.0"
