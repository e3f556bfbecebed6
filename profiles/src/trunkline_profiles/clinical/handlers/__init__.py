"""The work of the stages on a document, independent of the queue."""
