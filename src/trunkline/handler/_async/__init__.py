"""The asynchronous source of what handlers use; `_sync` is generated from it."""
