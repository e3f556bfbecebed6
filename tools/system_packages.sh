#!/usr/bin/env bash
# Make sure that the Debian packages of the reference server (PostgreSQL 15), of the pooler and of
# the clock that jumps are there: as root they are installed, otherwise the command to run is printed.
set -euo pipefail

packages=(postgresql-15 postgresql-15-pgtap postgresql-15-plpgsql-check pgbouncer libfaketime)
extensions=/usr/share/postgresql/15/extension

# The files count, not the package database: they may come from elsewhere.
missing=()
[[ -x /usr/lib/postgresql/15/bin/postgres ]] || missing+=("${packages[0]}")
compgen -G "$extensions/pgtap--*.sql" >/dev/null || missing+=("${packages[1]}")
[[ -e $extensions/plpgsql_check.control ]] || missing+=("${packages[2]}")
[[ -x /usr/sbin/pgbouncer ]] || missing+=("${packages[3]}")
compgen -G "/usr/lib/*/faketime/libfaketime.so.1" >/dev/null || missing+=("${packages[4]}")
if ((${#missing[@]} == 0)); then
  exit 0
fi

if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "The tests need PostgreSQL 15 with pgTAP and plpgsql_check, PgBouncer and libfaketime. On Debian 12:" >&2
  echo "  sudo apt-get update && sudo apt-get install --yes ${missing[*]}" >&2
  exit 1
fi
echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install --yes --no-install-recommends -qq "${missing[@]}"
