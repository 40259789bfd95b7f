#!/usr/bin/env bash
# Builds the program twice from the newest commit, in other directories and with another build
# cache, and fails unless both are the same file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
for n in first second/elsewhere; do
  mkdir -p "$dir/$n"
  git archive HEAD | tar -x -C "$dir/$n"
  (cd "$dir/$n" && GOCACHE="$dir/cache-${n%%/*}" CGO_ENABLED=0 GOFLAGS= \
    "${GO:-go}" build -trimpath -ldflags "-s -w -buildid= -X github.com/ratelimit/ratelimit/internal/command.version=reproducible" -o "$dir/${n%%/*}.bin" ./cmd/ratelimit)
done
sha256sum "$dir/first.bin" "$dir/second.bin" | sed "s|$dir/||"
cmp "$dir/first.bin" "$dir/second.bin"
echo "both builds are the same file"
