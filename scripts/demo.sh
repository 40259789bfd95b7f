#!/usr/bin/env bash
# Starts the service, an upstream and Envoy, prints commands to try, and stops them on
# Ctrl-C.
# Usage: scripts/demo.sh ENVOY; `make demo` builds the programs and calls it.
set -euo pipefail

envoy=$1
logs=$(mktemp -d)
children=()

cleanup() {
  trap - EXIT INT TERM
  [[ -z ${caller-} ]] || kill "$caller" 2>/dev/null || true
  kill -INT "${children[@]}" 2>/dev/null || true
  wait "${children[@]}" 2>/dev/null || true
  rm -r "$logs"
}
trap cleanup EXIT
trap 'exit 0' INT TERM

start() { # NAME COMMAND...
  local name=$1
  shift
  "$@" >"$logs/$name" 2>&1 &
  children+=($!)
}

await() { # NAME HOST PORT: until the port answers or the program is gone
  local pid=${children[-1]} deadline=$((SECONDS + 20))
  until (exec 3<>"/dev/tcp/$2/$3") 2>/dev/null; do
    if ! kill -0 "$pid" 2>/dev/null || ((SECONDS > deadline)); then
      echo "$1 did not start:" >&2
      tail -n 20 "$logs/$1" >&2
      exit 1
    fi
    read -rt 0.1 <> <(:) || true
  done
}

traffic() { # requests of four keys through Envoy, of which some are denied, until it is killed
  local keys=(carol dave carol erin carol dave carol frank) i=0
  while read -rt 0.25 <> <(:) || true; do
    {
      exec 3<>/dev/tcp/127.0.0.1/10000
      printf 'GET / HTTP/1.1\r\nHost: demo\r\nx-api-key: %s\r\nConnection: close\r\n\r\n' "${keys[i++ % 8]}" >&3
      cat <&3 >/dev/null
      exec 3>&-
    } 2>/dev/null || true
  done
}

start upstream bin/upstream --address 127.0.0.1:9000
await upstream 127.0.0.1 9000
start ratelimit bin/ratelimit serve --config examples/envoy/ratelimit.yaml
await ratelimit 127.0.0.1 8081
start envoy "$envoy" -c examples/envoy/basic.yaml --log-level warning --disable-hot-restart
await envoy 127.0.0.1 10000
traffic &
caller=$!

cat <<'TRY'
Envoy listens on http://127.0.0.1:10000 and asks the service on 127.0.0.1:8081.
Each API key has 5 requests, and one more every 2 seconds. In another terminal:

  # answered: 200, with x-ratelimit-limit, -remaining and -reset
  curl -i -H 'x-api-key: alice' http://127.0.0.1:10000/hello

  # the first ones 200, the rest 429
  for i in 1 2 3 4 5 6 7; do curl -so /dev/null -w '%{http_code}\n' -H 'x-api-key: bob' http://127.0.0.1:10000/; done

  # denied: 429, and retry-after says when to come again
  curl -i -H 'x-api-key: bob' http://127.0.0.1:10000/

  # decisions, entities and limits in a browser, with a few requests a second of the demo's own; bin/ratelimit top has them in the terminal
  bin/ratelimit console

  # the metrics of the service
  curl -s http://127.0.0.1:8080/metrics

Change examples/envoy/ratelimit.yaml while it runs: it is read again. Ctrl-C stops everything.
TRY

wait -n "${children[@]}" || true
echo "one of the programs stopped:" >&2
tail -n 5 "$logs"/* >&2
exit 1
