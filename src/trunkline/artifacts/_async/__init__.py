"""Uploads of handlers, and reads of clients and operators. `_sync` is generated from it."""
