#!/usr/bin/env bash
# Puts a Chromium for tests into a directory: the one on PATH, or Debian's package with the
# libraries that it needs, unpacked and not installed.
set -euo pipefail

into=$1
rm -rf "$into"
mkdir -p "$into"
for browser in chromium chromium-browser google-chrome; do
  if path=$(command -v "$browser"); then
    ln -s "$path" "$into/chromium"
    exit 0
  fi
done
NAME=chromium RUN=usr/lib/chromium/chromium bash "$(dirname "${BASH_SOURCE[0]}")/debs.sh" "$into" chromium fonts-dejavu-core
