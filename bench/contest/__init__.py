"""All products side by side in one run, taking turns."""
