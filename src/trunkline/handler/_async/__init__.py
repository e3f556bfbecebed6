"""The asynchronous tools of handlers; `trunkline.handler._sync` is generated from this package."""
