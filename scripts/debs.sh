#!/usr/bin/env bash
# Unpacks Debian's packages, with the packages that they need, into a directory, and installs nothing:
# debs.sh DIRECTORY PACKAGE... DIRECTORY/root has their files, and DIRECTORY/NAME starts the program that
# RUN names, such as RUN=usr/bin/redis-server, with the libraries of the packages.
set -euo pipefail

into=$1
shift
if ! command -v apt-get >/dev/null; then
  echo "there is no apt-get to fetch Debian's package of $1 with" >&2
  exit 1
fi
mkdir -p "$into/debs/partial" "$into/root"
into=$(cd "$into" && pwd)

# Locks are for installations, which this is not.
fetch() {
  apt-get -qq -y -o Debug::NoLocking=1 -o Dir::Cache::archives="$into/debs" --no-install-recommends --download-only install "$@" >"$into/log" 2>&1
}
if ! fetch "$@"; then
  apt-get -qq update >>"$into/log" 2>&1 || true
  fetch "$@" || { cat "$into/log" >&2; exit 1; }
fi
for package in "$into"/debs/*.deb; do
  dpkg -x "$package" "$into/root"
done
rm -rf "$into/debs"

cat >"$into/$NAME" <<LAUNCH
#!/bin/sh
root=\$(dirname "\$(readlink -f "\$0")")/root
libs=\$(find "\$root" -name '*.so*' -exec dirname {} \; | sort -u | tr '\n' ':')
LD_LIBRARY_PATH="\$libs\$LD_LIBRARY_PATH" exec "\$root/$RUN" "\$@"
LAUNCH
chmod +x "$into/$NAME"
