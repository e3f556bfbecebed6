"""Local stubs of the providers: real HTTP and real limits, and no data leaves this machine."""
