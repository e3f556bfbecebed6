"""Every product, ours first; each is a module of this package."""

from importlib import import_module

from bench.rivals.product import Product

__all__ = ["KEYS", "find"]

KEYS = (
    "trunkline",
    "pgqueuer",
    "procrastinate",
    "chancy",
    "awa",
    "dbos",
    "oban",
    "pgmq",
    "celery",
    "graphile_worker",
    "pg_boss",
)


def find(key: str) -> Product:
    """Return a product by its key."""
    product: Product = import_module(f"bench.rivals.{key}").PRODUCT
    return product
