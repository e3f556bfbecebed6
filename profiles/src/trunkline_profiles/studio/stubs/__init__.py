"""A stand-in for the text model, for tests and the demonstration."""
