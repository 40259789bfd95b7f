#!/usr/bin/env bash
# Starts DynamoDB Local, or a Valkey or Redis server, and three replicas of the service on one table,
# prints commands to try, and stops them on Ctrl-C.
# Usage: scripts/fleet.sh dynamodb|valkey CONFIG; `make run-dynamodb` and `make run-valkey` build the
# program and call it.
set -euo pipefail

store=$1
config=$2
example=examples/$store/ratelimit.yaml
logs=bin/fleet
replicas=()
database=

cleanup() { # the replicas first: they write to the table to the end
  trap - EXIT INT TERM
  kill -INT "${replicas[@]}" 2>/dev/null || true
  wait "${replicas[@]}" 2>/dev/null || true
  if [[ -n $database ]]; then
    kill -TERM "$database" 2>/dev/null || true
    wait "$database" 2>/dev/null || true
  fi
}
trap cleanup EXIT
trap 'exit 0' INT TERM

fail() {
  echo "$1" >&2
  exit 1
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; } # PORT

await() { # NAME PID PORT: until the port answers or the program is gone
  local deadline=$((SECONDS + 60))
  until answers "$3"; do
    if ! kill -0 "$2" 2>/dev/null || ((SECONDS > deadline)); then
      echo "$1 did not start; $logs/$1.log ends with:" >&2
      tail -n 20 "$logs/$1.log" >&2
      exit 1
    fi
    read -rt 0.1 <> <(:) || true
  done
}

case $store in
dynamodb)
  database_port=8000
  command -v java >/dev/null || fail "DynamoDB Local needs Java 17 or later, and there is no java on the PATH"
  ;;
valkey)
  database_port=6379
  server=.cache/valkey/valkey-server
  [[ -x $server ]] || fail "there is no $server: \`make run-valkey\` puts it there"
  ;;
*) fail "the store is $store; it must be dynamodb or valkey" ;;
esac
for port in "$database_port" 8080 8081 8180 8181 8280 8281; do
  if answers "$port"; then fail "port $port of 127.0.0.1 is in use: stop its listener"; fi
done
mkdir -p "$logs"

start_dynamodb() {
  cd .cache/dynamodb
  exec java -XX:+UseSerialGC -Djava.library.path=. -Dsqlite4java.library.path=. -cp './*' \
    software.amazon.dynamodb.services.local.main.ServerRunner -inMemory -sharedDb -disableTelemetry -port "$database_port"
}
start_valkey() { exec "$server" --port "$database_port" --bind 127.0.0.1 --save ''; } # in memory too

echo "starting a server of $store and three replicas; their logs are in $logs"
"start_$store" >"$logs/$store.log" 2>&1 &
database=$!
await "$store" "$database" "$database_port"

for n in 0 1 2; do
  bin/ratelimit serve --config "$config" --admin-address "unix:$logs/replica-$n.sock" \
    --grpc-address "127.0.0.1:8${n}81" --http-address "127.0.0.1:8${n}80" >"$logs/replica-$n.log" 2>&1 &
  replicas+=($!)
done
for n in 0 1 2; do await "replica-$n" "${replicas[n]}" "8${n}80"; done

cat <<TRY
Three replicas answer HTTP on 127.0.0.1:8080, 8180 and 8280, gRPC on 8081, 8181 and 8281.
Ctrl-C stops everything. In another terminal, commands such as "ratelimit status" ask the first one after

  export RATELIMIT_SERVER=unix://$PWD/$logs/replica-0.sock

TRY
[[ $config == "$example" ]] && sed "s/STORE/$store/" <<'TRY'
Each API key has 10 requests a minute, whichever replica it asks:

  # 12 requests of one key, to each replica in turn: the first ten 200, the rest 429
  for i in 1 2 3 4; do for port in 8080 8180 8280; do
    curl -so /dev/null -w "$port %{http_code}\n" http://127.0.0.1:$port/json -H 'content-type: application/json' -d '{"domain":"fleet","descriptors":[{"entries":[{"key":"api_key","value":"alice"}]}]}'
  done; done

  # the balance, and when it will be more
  curl -is http://127.0.0.1:8280/json -H 'content-type: application/json' -d '{"domain":"fleet","descriptors":[{"entries":[{"key":"api_key","value":"alice"}]}]}'

  # the writes that the first replica made
  curl -s http://127.0.0.1:8080/metrics | grep '^ratelimit_STORE'

Change examples/STORE/ratelimit.yaml while it runs: all replicas go by it.
TRY

wait -n "$database" "${replicas[@]}" || true
echo "one of the programs stopped:" >&2
tail -n 5 "$logs"/*.log >&2
exit 1
