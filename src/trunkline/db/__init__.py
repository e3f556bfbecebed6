"""Connections to the database, and all calls of its functions."""
