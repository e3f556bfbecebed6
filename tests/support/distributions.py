"""Writes the metadata of distributions into a folder, so that they need no installation."""

from pathlib import Path

__all__ = ["write_distribution"]


def write_distribution(
    folder: Path, name: str, entry_points: dict[str, str], version: str = "1.0"
) -> None:
    """Write the files that `importlib.metadata` reads of a distribution with profiles."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8"
    )
    lines = "".join(f"{key} = {value}\n" for key, value in entry_points.items())
    (metadata / "entry_points.txt").write_text(f"[trunkline.profiles]\n{lines}", encoding="utf-8")
