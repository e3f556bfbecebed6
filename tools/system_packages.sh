#!/usr/bin/env bash
# Checks for the Debian packages of the reference server (PostgreSQL 15), the pooler, libfaketime and
# the tools that read and print documents. As root it installs missing ones; otherwise it prints the command.
set -euo pipefail

packages=(postgresql-15 postgresql-15-pgtap postgresql-15-plpgsql-check pgbouncer libfaketime
  imagemagick poppler-utils tesseract-ocr chromium)
extensions=/usr/share/postgresql/15/extension

# Checks files instead of the package database, because they may have another source.
missing=()
[[ -x /usr/lib/postgresql/15/bin/postgres ]] || missing+=("${packages[0]}")
compgen -G "$extensions/pgtap--*.sql" >/dev/null || missing+=("${packages[1]}")
[[ -e $extensions/plpgsql_check.control ]] || missing+=("${packages[2]}")
[[ -x /usr/sbin/pgbouncer ]] || missing+=("${packages[3]}")
compgen -G "/usr/lib/*/faketime/libfaketime.so.1" >/dev/null || missing+=("${packages[4]}")
# Other programs are named convert too.
{ magick -version || convert -version; } 2>/dev/null | grep -q ImageMagick || missing+=("${packages[5]}")
command -v pdftoppm >/dev/null || missing+=("${packages[6]}")
tesseract --list-langs 2>/dev/null | grep -qx eng || missing+=("${packages[7]}")
command -v chromium >/dev/null || missing+=("${packages[8]}")
if ((${#missing[@]} == 0)); then
  exit 0
fi

if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "The tests need PostgreSQL 15 with pgTAP and plpgsql_check, PgBouncer, libfaketime, ImageMagick," >&2
  echo "poppler, tesseract and Chromium. On Debian 12:" >&2
  echo "  sudo apt-get update && sudo apt-get install --yes ${missing[*]}" >&2
  exit 1
fi
echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install --yes --no-install-recommends -qq "${missing[@]}"
