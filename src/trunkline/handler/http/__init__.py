"""Calls to providers through httpx2: bytes are counted, time is bounded, limits are kept."""
