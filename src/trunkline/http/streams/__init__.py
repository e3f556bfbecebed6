"""Live events over HTTP: streams of server-sent events, tickets for them, and a browser module."""
