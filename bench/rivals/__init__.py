"""Other queues, each in its own environment, so that none of them is a dependency of ours."""
