"""Local stand-ins for the outside services: real protocols, nothing leaves this machine."""
