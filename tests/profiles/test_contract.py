"""The contract of import-linter leaves profiles the public modules, and nothing else."""

import tomllib
from pathlib import Path

from tools.generate_reference_python import MODULES

ROOT = Path(__file__).parents[2]


def test_profiles_may_import_what_the_reference_describes_and_nothing_else() -> None:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [
        one
        for one in content["tool"]["importlinter"]["contracts"]
        if one.get("source_modules") == ["trunkline_profiles"]
    ]
    package = ROOT / "src" / "trunkline"
    packages = {f"trunkline.{path.parent.name}" for path in package.glob("*/__init__.py")}
    public = {*MODULES, "trunkline.errors"} - {"trunkline"}
    assert public < packages
    expected = packages - public | {f"{name}.*" for name in public}
    assert set(contract["forbidden_modules"]) == expected
