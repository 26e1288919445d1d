#!/usr/bin/env bash
# Installs Debian's packages that a kind of run needs, where they are missing and we may.
set -euo pipefail
case ${1:-test} in
  test) wanted=(prometheus:promtool prometheus-alertmanager:amtool iproute2:ip) ;;
  *) echo "usage: $0 test" >&2; exit 2 ;;
esac

missing=()
for pair in "${wanted[@]}"; do
  command -v "${pair#*:}" >/dev/null || missing+=("${pair%%:*}")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "Missing: ${missing[*]}; tests against them will say so." >&2
  exit 0
fi
echo "Installing ${missing[*]}."
if [ ! -e /usr/sbin/policy-rc.d ]; then # no service may start by being installed
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
fi
apt-get update -qq || true # one broken source must not hide the others
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" ||
  echo "Could not install ${missing[*]}; tests against them will say so." >&2
