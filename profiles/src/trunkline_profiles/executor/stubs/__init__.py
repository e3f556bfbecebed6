"""Local stubs of the outside services: real protocols, and no data leaves this machine."""
