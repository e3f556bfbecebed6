"""Other queues, each in an environment of its own so that none of it is a dependency of ours."""
