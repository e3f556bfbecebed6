"""The functions and views of schema trunkline, each mirrored once as a `Call`."""
