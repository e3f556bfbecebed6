"""What limits cost: one module per measure, each with ``run(place, sizes) -> list[Figure]``."""
