"""The entry point of a process under the supervisor. Only the supervisor starts it."""

import os
import sys

import msgspec

from trunkline.errors import TrunklineError
from trunkline.telemetry import escaped_lines, set_up_logging
from trunkline.worker.entry import run_one
from trunkline.worker.options import WorkerOptions

if __name__ == "__main__":
    with os.fdopen(int(sys.argv[2]), "rb") as pipe:
        options = msgspec.json.decode(pipe.read(), type=WorkerOptions)
    set_up_logging(options.log_format, options.log_level)
    try:
        code = run_one(options, parent=int(sys.argv[1]))
    except TrunklineError as error:
        lines = escaped_lines(f"Error: {error}\nHint: {error.hint}\nCode: {error.code}")
        sys.stderr.write(lines + "\n")
        code = error.exit_code
    sys.exit(code)
