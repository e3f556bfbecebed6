"""Compares our worker and client with other queues on the same server, as whole processes."""
