"""Live events over HTTP: how late a change reaches a client, and what open streams take."""
