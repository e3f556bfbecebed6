"""Complete systems built on Trunkline, each one a profile with its SQL, handlers and demo."""
