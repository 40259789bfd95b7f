#!/usr/bin/env bash
# Draws deploy/grafana/ratelimit.json with the data that run.sh left in OUT. The panels are
# those of Grafana's own packages in npm; draw.jsx puts them together in a browser.
# Usage: scripts/dashboard/draw.sh PROMETHEUS CHROMIUM OUT PICTURE.png OVERVIEW.png
set -euo pipefail

prometheus=$(realpath "$(command -v "$1")")
chromium=$(realpath "$(command -v "$2")")
picture=$(realpath "$4")
overview=$(realpath "$5")
here=$(dirname "$(realpath "$0")")
cd "$3"
read -r began <began
read -r ended <ended

mkdir -p draw
cp "$here/package.json" "$here/draw.jsx" "$here/../../deploy/grafana/ratelimit.json" draw
npm install --prefix draw --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error
draw/node_modules/.bin/esbuild draw/draw.jsx --bundle --minify --jsx=automatic --outfile=draw/page.js --log-level=warning \
  --define:global=window --define:process.env.NODE_ENV='"production"' --loader:.woff=dataurl --loader:.woff2=dataurl --loader:.svg=dataurl --loader:.ttf=empty
echo '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="page.css"><div id="root"></div><script src="page.js"></script>' >draw/page.html

"$prometheus" --config.file /dev/null --storage.tsdb.path data --web.listen-address 127.0.0.1:18490 >>prometheus.log 2>&1 &
trap 'kill $!; wait' EXIT
curl -so /dev/null --retry 60 --retry-delay 1 --retry-connrefused 127.0.0.1:18490/
draw() { # PICTURE WIDTH,HEIGHT
  "$chromium" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size="$2" --virtual-time-budget=30000 --screenshot="$1" \
    "file://$PWD/draw/page.html#prometheus=http://127.0.0.1:18490&from=$began&to=$ended" 2>>chromium.log
  if command -v pngquant >/dev/null; then pngquant --force --output "$1" 128 "$1"; fi # a third of the size
}
draw "$picture" 1600,2865
draw "$overview" 1600,560
