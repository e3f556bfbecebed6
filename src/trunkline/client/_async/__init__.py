"""The client, asynchronous. `trunkline.client._sync` is generated from this package."""
