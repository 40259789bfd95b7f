#!/usr/bin/env bash
# Builds the programs that tests start, once for all of them, and runs a command, which finds them
# in its environment: programs.sh make test-deploy. They are gone when it ends.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir" # for a service that runs as another user
"${GO:-go}" build -buildvcs=false -o "$dir/" ./cmd/ratelimit ./examples/upstream
export RATELIMIT_PROGRAM=$dir/ratelimit RATELIMIT_UPSTREAM=$dir/upstream
"$@"
