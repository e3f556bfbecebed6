"""Ways to call the engine from Python, compared: the driver, the shape of answers, the loop."""
