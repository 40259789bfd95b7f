#!/usr/bin/env bash
# Runs a fleet of three replicas on DynamoDB Local and one node for 12 minutes under load.
# There is a wrong configuration, a replica that stops and an outage of the store.
# Prometheus scrapes them into OUT/data, which draw.sh draws.
# Usage: scripts/dashboard/run.sh RATELIMIT JARS PROMETHEUS OUT
set -euo pipefail

program=$(realpath "$1")
jars=$(realpath "$2")
prometheus=$(realpath "$(command -v "$3")")
here=$(dirname "$(realpath "$0")")
mkdir -p "$4"
cd "$4"
rm -rf data edge
cp "$here/fleet.yaml" "$here/edge.yaml" .

declare -A pid
cleanup() {
  trap - EXIT INT TERM
  kill -CONT "${pid[dynamodb]}" 2>/dev/null || true
  for name in "${!pid[@]}"; do # the store last: the replicas write to the table to the end
    if [[ $name != dynamodb ]]; then kill -TERM "${pid[$name]}" 2>/dev/null || true; fi
  done
  for name in "${!pid[@]}"; do
    if [[ $name != dynamodb ]]; then wait "${pid[$name]}" 2>/dev/null || true; fi
  done
  kill -TERM "${pid[dynamodb]}" 2>/dev/null || true
  wait
}
trap cleanup EXIT
trap 'exit 1' INT TERM

start() { # NAME COMMAND...
  local name=$1
  shift
  "$@" >>"$name.log" 2>&1 &
  pid[$name]=$!
}

replica() { # NUMBER
  start "replica-$1" "$program" serve --config fleet.yaml --admin-address off --http-address "127.0.0.1:184$(($1 + 1))0" --grpc-address "127.0.0.1:184$(($1 + 1))1"
}

await() { # PORT
  curl -so /dev/null --retry 60 --retry-delay 1 --retry-connrefused "127.0.0.1:$1/"
}

stoppable() { trap 'kill $(jobs -p) 2>/dev/null; exit' TERM; }

# The load of a minute on a replica: few keys ask for most, some customers order too often.
load() { # PORT RATE
  local bench=("$program" bench --address "127.0.0.1:$1" --duration 60s)
  "${bench[@]}" shop 'tenant=t-{n}' --keys 4 --draw zipf --rate "$2" &
  "${bench[@]}" shop 'api_key=k-{n}' --keys 30 --draw zipf --rate 10 &
  "${bench[@]}" shop 'customer=c-{n}' --keys 60 --draw zipf --rate 3 &
  "${bench[@]}" shop 'search=k-{n}' --keys 20 --draw zipf --rate 4 &
  "${bench[@]}" llm-gateway 'api_key=k-{n}' meter=embeddings --keys 20 --rate 2 --hits 1000 &
  wait
}

loads() { # PORT: a rate for each minute
  stoppable
  for rate in 40 45 55 50 70 60 50 60 80 65 50 55 50; do load "$1" "$rate"; done
}

edge() {
  stoppable
  for rate in 40 45 60 75 55 40 50 70 60 45 35 50 60; do
    "$program" bench --address 127.0.0.1:18441 --duration 60s edge 'address=10.0.0.{n}' --keys 2000 --draw zipf --rate "$rate" &
    wait
  done
}

call() { # PORT ENTRIES HITS
  curl -s -m 2 -H 'content-type: application/json' "127.0.0.1:$1/json" \
    -d "{\"domain\":\"llm-gateway\",\"descriptors\":[{\"entries\":[$2],\"hitsAddend\":$3}]}"
}

# Answers of a language model: 1,500 tokens are reserved, and settled to the usage.
answers() { # PORT
  stoppable
  local n=0 id
  while true; do
    n=$((n + 1))
    id=$(call "$1" "{\"key\":\"api_key\",\"value\":\"k-$((n % 6))\"},{\"key\":\"meter\",\"value\":\"reserve\"}" 1500 |
      grep -o '"reservation_id": *"[^"]*"' | cut -d'"' -f4) || true
    sleep 0.25
    if [[ -n $id ]]; then
      call "$1" "{\"key\":\"op\",\"value\":\"settle\"},{\"key\":\"reservation_id\",\"value\":\"$id\"}" "$((RANDOM % 1600))" || true
    fi
  done
}

start dynamodb env -C "$jars" java -Xmx512m -XX:+UseSerialGC -Djava.library.path=. -Dsqlite4java.library.path=. -cp './*' \
  software.amazon.dynamodb.services.local.main.ServerRunner -inMemory -sharedDb -disableTelemetry -port 18400
await 18400
for n in 0 1 2; do replica "$n"; done
start edge-0 "$program" serve --config edge.yaml --data edge --admin-address off --http-address 127.0.0.1:18440 --grpc-address 127.0.0.1:18441
start prometheus "$prometheus" --config.file "$here/prometheus.yaml" --storage.tsdb.path data --web.listen-address 127.0.0.1:18490
for port in 18410 18420 18430 18440 18490; do await "$port"; done
for n in 0 1 2; do
  start "load-$n" loads "184$((n + 1))1"
  start "answers-$n" answers "184$((n + 1))0"
done
start load-edge edge

sleep 75 # DynamoDB Local is slow at first
date +%s >began
sleep 120
echo "a wrong configuration, for a minute"
sed 's/requests: hits/requests: hit/' "$here/fleet.yaml" >fleet.yaml
sleep 60
sed 's|90/minute|120/minute|' "$here/fleet.yaml" >fleet.yaml
sleep 60
echo "replica-2 stops, for a minute"
kill -TERM "${pid[replica-2]}"
wait "${pid[replica-2]}" || true
sleep 60
replica 2
sleep 120
echo "the store does not answer, for 40 seconds"
kill -STOP "${pid[dynamodb]}"
sleep 40
kill -CONT "${pid[dynamodb]}"
sleep 200
date +%s >ended
