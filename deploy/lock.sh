#!/usr/bin/env bash
# Pins what Sentinel needs, and what developing it needs: hashes, every Python and platform,
# no index address. New releases wait a week before they are taken.
set -euo pipefail
bin=$1
cool=$(date -u -d '7 days ago' +%Y-%m-%d)
"$bin/python" -m pip install -q uv
compile() {
  "$bin/uv" pip compile -q --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-annotate --exclude-newer "$cool" \
    --custom-compile-command "make lock" "$@"
}
compile pyproject.toml -o requirements/run.lock
compile pyproject.toml --group dev requirements/build.in -o requirements/dev.lock
