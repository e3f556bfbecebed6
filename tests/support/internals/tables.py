"""Names of internal tables by the words of the product."""

__all__ = ["SCHEMA", "table"]

SCHEMA = "trunkline_internal"

# Tables whose word differs from their name.
_NAMES = {
    "adjustments": "bucket_adjustments",
    "buckets": "bucket_names",
    "open_buckets": "bucket_queues",
}


def table(name: str) -> str:
    """Return the qualified name of a table, for use in SQL."""
    return f"{SCHEMA}.{_NAMES.get(name, name)}"
