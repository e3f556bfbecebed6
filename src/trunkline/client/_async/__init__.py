"""The asynchronous client. `trunkline.client._sync` is generated from this package."""
