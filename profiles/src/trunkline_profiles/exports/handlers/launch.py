"""Starts a browser: ``python launch.py READ WRITE UID GID PROGRAM …``.

Moves the two pipes to descriptors 3 and 4, gives up root, sets limits, and becomes the program. A
separate program, because a process with threads must not do this between fork and exec.
"""

import fcntl
import os
import resource
import sys


def main(arguments: list[str]) -> None:
    """Become the program."""
    read, write, uid, gid = map(int, arguments[:4])
    # Free descriptors above 4 first, so that neither overwrites the other.
    read, write = (fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in (read, write))
    os.dup2(read, 3, inheritable=True)
    os.dup2(write, 4, inheritable=True)
    os.closerange(5, 1024)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    if os.getuid() == 0 and uid != 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    os.execv(arguments[4], arguments[4:])  # noqa: S606 - becomes the browser, without a shell


if __name__ == "__main__":
    main(sys.argv[1:])
