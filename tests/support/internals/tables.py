"""Internal tables by the words of the product."""

__all__ = ["SCHEMA", "table"]

SCHEMA = "trunkline_internal"

# Every other table is called by its own name.
_NAMES = {
    "adjustments": "gate_corrections",
    "bucket_states": "gate_states",
    "buckets": "gate_names",
    "open_buckets": "gate_queues",
    "usage": "spendings",
}


def table(name: str) -> str:
    """Return the qualified name of a table, for use in SQL."""
    return f"{SCHEMA}.{_NAMES.get(name, name)}"
