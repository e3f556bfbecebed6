"""HTTP/1.1 as handlers need it: bytes are counted, time is bounded, limits are heeded."""
