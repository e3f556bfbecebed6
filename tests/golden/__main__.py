"""Shows how the product differs from the golden files of its public surface; --write accepts it."""

from __future__ import annotations

import argparse
import os
import sys

from tests.golden import comparing, reading
from tests.support.servers import Servers, majors


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files as the product is")
    write = parser.parse_args().write
    # Any server gives the same files; the tests compare all of them.
    os.environ["TRUNKLINE_TEST_SERVERS"] = str(majors()[-1])
    found = {name: list(lines()) for name, lines in reading.SOURCES.items()}
    servers = Servers()
    try:
        (server,) = servers.servers
        found |= {name: lines(server) for name, lines in reading.ON_A_SERVER.items()}
        found |= reading.sql_of_profiles(server)
        found["json"] = reading.newest(server)
    finally:
        servers.close()
    act = comparing.write if write else comparing.difference
    changed = [text for name, lines in sorted(found.items()) if (text := act(name, lines))]
    print("\n".join(changed))
    return 1 if changed and not write else 0


if __name__ == "__main__":
    sys.exit(main())
