"""What the stages do with a document; none of them knows the queue."""
