"""All products side by side in one run, measured in turns."""
