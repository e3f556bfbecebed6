"""What workflows cost: one module per measure, each with ``run(place, sizes) -> list[Figure]``."""
