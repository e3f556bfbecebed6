#!/usr/bin/env bash
# Create or refresh the virtual environment $1 from requirements-dev.lock.
set -euo pipefail

venv=$1
python=""
for candidate in python3.11 python3; do
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [[ -z $python ]]; then
  echo "Trunkline needs Python 3.11 or newer, and neither python3.11 nor python3 is one." >&2
  exit 1
fi
if [[ ! -x $venv/bin/python ]]; then
  if ! "$python" -m venv "$venv"; then
    echo "$python cannot make virtual environments; on Debian: apt-get install python3-venv" >&2
    exit 1
  fi
fi
pip=("$venv/bin/python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" install --require-hashes --requirement requirements-dev.lock
# The lock includes the build backend, so the editable install downloads only locked packages.
"${pip[@]}" install --no-deps --no-build-isolation --editable . --editable ./profiles
