"""Whole processes compared: our worker and client against other queues on the same server."""
