"""What the measured processes run: the application of the worker, and the producers."""
