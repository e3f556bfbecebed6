"""Numbers, sizes and lengths of time as people read them."""

from datetime import timedelta

__all__ = ["age", "count", "size"]


def age(length: timedelta | None) -> str:
    """Format a duration in its two largest units."""
    if length is None:
        return ""
    total = abs(length.total_seconds())
    if total < 1:
        return f"{total * 1000:.{0 if total >= 0.01 else 1}f}ms"
    if total < 10:
        return f"{total:.1f}".removesuffix(".0") + "s"
    whole = round(total)
    for unit, name, lower, lower_name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= unit:
            rest = whole % unit // lower
            return f"{whole // unit}{name}" + (f"{rest:02d}{lower_name}" if rest else "")
    return f"{whole}s"


def count(number: int, noun: str) -> str:
    """Format a number of things."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: int) -> str:
    """Format an amount of bytes."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
