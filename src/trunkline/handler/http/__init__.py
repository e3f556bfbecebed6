"""Calls to providers with httpx2, with counted bytes, bounded time and limits."""
