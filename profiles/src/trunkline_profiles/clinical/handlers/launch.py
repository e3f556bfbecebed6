"""Set resource limits, then become another program.

Run as a script: ``python -I -S launch.py '{"CPU": 30, ...}' SECONDS PROGRAM ARGUMENT...``. The
limits apply before the program loads anything. A preexec function would do the same between fork
and exec, where a process with threads can deadlock. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import sys

# The caller recognises a failure of this script, not of the program, by code and prefix.
FAILED = 125
PREFIX = "trunkline launch: "


def main() -> None:
    """Limit this process and replace it."""
    try:
        _limit(json.loads(sys.argv[1]))
        # The caller ends the program with SIGKILL. A signal to the whole service (Ctrl-C, a stop by
        # the init system) has nothing to do with the document, so it must not end the program.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        # Python ignores these two, and an ignored signal stays ignored after exec.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        # Works without the caller: the program also ends if its worker was killed.
        signal.alarm(int(sys.argv[2]))
        os.execv(sys.argv[3], sys.argv[3:])  # noqa: S606 - the point of this script
    except (OSError, ValueError, ImportError) as error:
        sys.stderr.write(f"{PREFIX}{error}\n")
        sys.exit(FAILED)


def _limit(limits: dict[str, int]) -> None:
    # Missing on Windows, where no program is run because it would have no limits.
    import resource  # noqa: PLC0415

    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            # One more second of CPU: the soft limit sends SIGXCPU, the hard one SIGKILL.
            resource.setrlimit(kind, (soft, soft + (name == "CPU" and soft == value)))
        except ValueError:
            # macOS has no limit on address space.
            if not (name == "AS" and sys.platform == "darwin"):
                raise


if __name__ == "__main__":
    main()
