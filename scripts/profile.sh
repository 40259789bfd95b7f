#!/usr/bin/env bash
# Profiles the program under load, admitted and denied, with one limit and with parents, and writes the
# profile that the compiler optimizes it by. `make profile` builds the program and calls it.
# Usage: scripts/profile.sh PROGRAM OUT
set -euo pipefail

program=$1
out=$2
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT

cat > "$dir/ratelimit.yaml" <<'YAML'
server: {http: {pprof: true}}
log: {level: error}
limits:
  system: {rpm: 1_000_000_000/second}
  entities:
    org/acme: {limits: {_default_: {rpm: 1_000_000_000/second}}}
domains:
- domain: load
  rules:
  - {name: plain, match: {api_key: "*", model: "*"}, entity: "key/{api_key}", resource: "{model}", consume: {rpm: 1}}
  - {name: cascade, match: {user: "*"}, entity: "user/{user}", resource: api, parent: org/acme, consume: {rpm: 1}}
  - {name: few, match: {few: "*"}, entity: "few/{few}", resource: api, limits: {rpd: 5/day}, consume: {rpd: 1}}
YAML
"$program" serve --config "$dir/ratelimit.yaml" --grpc-address 127.0.0.1:18081 --http-address 127.0.0.1:18080 > /dev/null &
pids+=($!)
until curl --noproxy '*' -sf http://127.0.0.1:18080/readyz > /dev/null; do sleep 0.2; done
load() {
  "$program" bench load "$@" --address 127.0.0.1:18081 --duration 40s --connections 2 > /dev/null &
  pids+=($!)
}
load 'api_key=k-{n}' model=gpt-4 --keys 1000 --workers 48
load 'user=u-{n}' --keys 1000 --workers 8
load 'few=f-{n}' --keys 1000 --workers 8
sleep 3
curl --noproxy '*' -sf -o "$out" "http://127.0.0.1:18080/debug/pprof/profile?seconds=30"
