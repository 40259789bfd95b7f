#!/usr/bin/env bash
# Puts a Chromium for tests into a directory: the one on PATH, or Debian's package with the
# libraries that it needs, unpacked and not installed.
set -euo pipefail

into=$1
rm -rf "$into"
mkdir -p "$into/debs/partial" "$into/root"
into=$(cd "$into" && pwd)

for browser in chromium chromium-browser google-chrome; do
  if path=$(command -v "$browser"); then
    ln -s "$path" "$into/chromium"
    exit 0
  fi
done
if ! command -v apt-get >/dev/null; then
  echo "there is no chromium on PATH, and no apt-get to fetch Debian's package with" >&2
  exit 1
fi

# Locks are for installations, which this is not.
fetch() {
  apt-get -qq -y -o Debug::NoLocking=1 -o Dir::Cache::archives="$into/debs" --no-install-recommends --download-only install chromium fonts-dejavu-core >"$into/log" 2>&1
}
if ! fetch; then
  apt-get -qq update >>"$into/log" 2>&1 || true
  fetch || { cat "$into/log" >&2; exit 1; }
fi
for package in "$into"/debs/*.deb; do
  dpkg -x "$package" "$into/root"
done
rm -rf "$into/debs"

cat >"$into/chromium" <<'LAUNCH'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/root
libs=$(find "$root" -name '*.so*' -exec dirname {} \; | sort -u | tr '\n' ':')
LD_LIBRARY_PATH="$libs$LD_LIBRARY_PATH" exec "$root/usr/lib/chromium/chromium" "$@"
LAUNCH
chmod +x "$into/chromium"
