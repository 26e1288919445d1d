#!/usr/bin/env bash
# Makes the environment in the folder given, by lock and with hashes; Sentinel itself editable.
set -euo pipefail
venv=$1
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "Sentinel needs Python 3.11 or newer; $python is $("$python" --version 2>&1 || echo missing)." >&2
  echo "Name another one: make PYTHON=python3.12 …" >&2
  exit 2
fi

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing python$version-venv, which this Python lacks."
    apt-get update -qq || true # one broken source must not hide the others
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "python$version-venv" ||
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv
  else
    echo "This Python cannot make environments: apt-get install python$version-venv" >&2
    exit 2
  fi
fi

# One that was left half made has a python and no pip.
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv "$venv"
export PIP_DISABLE_PIP_VERSION_CHECK=1
"$venv/bin/python" -m pip install -q --require-hashes -r requirements/dev.lock
"$venv/bin/python" -m pip install -q --no-deps --no-build-isolation -e .
