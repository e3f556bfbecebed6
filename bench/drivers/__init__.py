"""Compares ways to call the engine from Python: driver, form of results, event loop."""
