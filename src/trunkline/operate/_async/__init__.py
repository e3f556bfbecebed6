"""What an operator can ask and do, asynchronous; `trunkline.operate._sync` is generated from it."""
