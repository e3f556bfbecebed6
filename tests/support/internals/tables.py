"""Internal tables by the words of the product."""

__all__ = ["SCHEMA", "table", "word"]

SCHEMA = "trunkline_internal"

# Every other table is called by its own name.
_NAMES = {
    "adjustments": "gate_corrections",
    "bucket_states": "gate_states",
    "buckets": "gate_names",
    "open_buckets": "gate_queues",
    "usage": "spendings",
}
_WORDS = {name: word for word, name in _NAMES.items()}


def table(name: str) -> str:
    """Return the qualified name of a table, for use in SQL."""
    return f"{SCHEMA}.{_NAMES.get(name, name)}"


def word(qualified: str) -> str:
    """Return the product's word for a qualified table name."""
    name = qualified.removeprefix(f"{SCHEMA}.")
    return _WORDS.get(name, name)
