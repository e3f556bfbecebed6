"""The asynchronous verbs for operators; `trunkline.operate._sync` is generated from them."""
