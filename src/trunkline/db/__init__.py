"""Connections to the database, and the only calls of its functions."""
