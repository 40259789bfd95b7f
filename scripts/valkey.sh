#!/usr/bin/env bash
# Puts a server for tests into a directory, as valkey-server: the one on PATH, of Valkey or Redis, or
# Debian's package, unpacked and not installed. Debian 12 has Redis 7 alone.
set -euo pipefail

into=$1
rm -rf "$into"
mkdir -p "$into"
for server in valkey-server redis-server; do
  if path=$(command -v "$server"); then
    ln -s "$path" "$into/valkey-server"
    exit 0
  fi
done
server=redis-server
if apt-cache show valkey-server >/dev/null 2>&1; then
  server=valkey-server
fi
NAME=valkey-server RUN=usr/bin/$server bash "$(dirname "${BASH_SOURCE[0]}")/debs.sh" "$into" "$server"
