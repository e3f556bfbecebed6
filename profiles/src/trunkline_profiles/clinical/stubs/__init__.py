"""Local stand-ins for the providers: real HTTP and real limits, nothing leaves this machine."""
