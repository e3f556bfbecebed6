"""One module per measure, each with ``run(place, sizes) -> list[Figure]``."""
