#!/usr/bin/env bash
# Profiles the program under load, and writes the profile that the compiler optimizes it by. With an embedded store it
# admits and denies, with one limit and with parents. On Valkey it decides keys that are used once in a while.
# `make profile` builds the program and calls it.
# Usage: scripts/profile.sh PROGRAM VALKEY-SERVER OUT
set -euo pipefail

program=$1
server=$2
out=$3
go=${GO:-go}
grpc=127.0.0.1:18081
http=127.0.0.1:18080
port=18079
dir=$(mktemp -d)
pids=()
database=
stop() {
  kill "${pids[@]}" 2>/dev/null || true
  wait "${pids[@]}" 2>/dev/null || true
  pids=()
}
trap 'pids+=($database); stop; rm -rf "$dir"' EXIT

# start FILE starts the program.
start() {
  "$program" serve --config "$1" --grpc-address $grpc --http-address $http > /dev/null &
  pids+=($!)
  until curl --noproxy '*' -sf http://$http/readyz > /dev/null; do sleep 0.2; done
}
load() {
  "$program" bench load "$@" --address $grpc --duration 40s --connections 2 > /dev/null &
  pids+=($!)
}
# profile FILE writes a profile of half a minute, and ends the load.
profile() {
  sleep 3
  curl --noproxy '*' -sf -o "$1" "http://$http/debug/pprof/profile?seconds=30"
  stop
}

cat > "$dir/embedded.yaml" <<'YAML'
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
start "$dir/embedded.yaml"
load 'api_key=k-{n}' model=gpt-4 --keys 1000 --workers 48
load 'user=u-{n}' --keys 1000 --workers 8
load 'few=f-{n}' --keys 1000 --workers 8
profile "$dir/embedded.pprof"

cat > "$dir/valkey.yaml" <<YAML
server: {http: {pprof: true}}
log: {level: error}
store: {type: valkey, valkey: {addresses: ["127.0.0.1:$port"], create: true}}
domains:
- domain: load
  rules:
  - {name: plain, match: {api_key: "*"}, entity: "key/{api_key}", resource: api, limits: {rpm: 100/minute, rpd: 1_000_000/day}, consume: {rpm: 1, rpd: 1}}
YAML
"$server" --port $port --save '' --appendonly no --dir "$dir" > /dev/null &
database=$!
start "$dir/valkey.yaml"
load 'api_key=k-{n}' --keys 10000 --workers 64
profile "$dir/valkey.pprof"

"$go" tool pprof -proto -output "$out" "$dir/embedded.pprof" "$dir/valkey.pprof" 2>/dev/null
