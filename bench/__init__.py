"""Measures the engine against plain SQL on the same tables; see README.md in this folder."""
