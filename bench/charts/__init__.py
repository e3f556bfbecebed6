"""Charts as SVG, drawn here: no dependency, readable on light and on dark backgrounds."""
