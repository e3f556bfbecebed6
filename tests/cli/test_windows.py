"""What works on Windows, where no embedded server runs. No test of ours runs there."""

from __future__ import annotations

import json
import subprocess
import sys

# Other packages are imported before, as on Linux; ours are imported as if on Windows.
_PROGRAM = """
import json, sys
import trunkline.cli.database, trunkline.cli.doctor, trunkline.cli.profile
for name in [name for name in sys.modules if name.partition(".")[0] == "trunkline"]:
    del sys.modules[name]
sys.modules["fcntl"] = None
sys.platform = "win32"
from trunkline.cli.database import db
import trunkline.cli.doctor, trunkline.cli.profile, trunkline.cli.schema
print(json.dumps([sorted(db.commands), "trunkline.embedded" in sys.modules]))
"""


def test_backups_need_no_embedded_server() -> None:
    result = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )
    assert json.loads(result.stdout) == [["backup", "restore"], False]
