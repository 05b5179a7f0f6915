#!/usr/bin/env bash
# Installs the Debian packages of tools/packages.txt that are missing; does nothing, quickly, when
# none is. Works as root or with sudo. Extra lists may be named: tools/setup.sh tools/packages-bench.txt
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t wanted < <(sed 's/#.*//' tools/packages.txt "$@" | awk 'NF {print $1}' | sort -u)
# What an installed package provides counts, too: nodejs of other archives brings npm along.
mapfile -t installed < <(dpkg-query -W -f '${db:Status-Status} ${binary:Package} ${Provides}\n' 2>/dev/null |
                         awk '$1 == "installed" {for (i = 2; i <= NF; i++) {sub(/[:,].*/, "", $i); print $i}}' | sort -u)
mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}") <(printf '%s\n' "${installed[@]}"))
[ "${#missing[@]}" -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null || {
    echo "setup: these Debian packages are missing: ${missing[*]}" >&2
    echo "setup: run 'make setup' as root, or install sudo." >&2
    exit 2
  }
  as_root=(sudo)
fi
echo "setup: installing ${#missing[@]} Debian packages: ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
