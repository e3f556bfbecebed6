"""A durable job queue whose engine is SQL functions in PostgreSQL."""

__all__ = ["__version__"]

__version__ = "0.1.0"
