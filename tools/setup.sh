#!/usr/bin/env bash
# Installs the Debian packages of tools/packages.txt that are missing, and the Python packages of
# tools/requirements*.txt into .venv; does nothing, quickly, when nothing is missing. Works as root or
# with sudo. Extra lists of Debian packages may be named: tools/setup.sh tools/packages-bench.txt
#
# PIP_ARGS is handed to pip: PIP_ARGS="--index-url ..." for those who take torch from elsewhere.
# PYTHON names a Python that has torch already; then .venv gets none of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t wanted < <(sed 's/#.*//' tools/packages.txt "$@" | awk 'NF {print $1}' | sort -u)
# What an installed package provides counts, too: nodejs of other archives brings npm along.
mapfile -t installed < <(dpkg-query -W -f '${db:Status-Status} ${binary:Package} ${Provides}\n' 2>/dev/null |
                         awk '$1 == "installed" {for (i = 2; i <= NF; i++) {sub(/[:,].*/, "", $i); print $i}}' | sort -u)
mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}") <(printf '%s\n' "${installed[@]}"))

if [ "${#missing[@]}" -gt 0 ]; then
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
fi

# Each list is installed once; its copy in .venv says that it is there. Without dependencies: the
# lists are complete, and nothing may pull another torch.
[ -x .venv/bin/python ] || /usr/bin/python3 -m venv .venv
for list in tools/requirements.txt tools/requirements-test.txt; do
  done_file=.venv/installed-$(basename "$list")
  cmp -s "$list" "$done_file" && continue
  echo "setup: installing Python packages of $list into .venv" >&2
  wanted_list=$(mktemp)
  if [ -n "${PYTHON:-}" ]; then grep -v '^torch==' "$list" > "$wanted_list"; else cp "$list" "$wanted_list"; fi
  # shellcheck disable=SC2086
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps ${PIP_ARGS:-} -r "$wanted_list"
  rm -f "$wanted_list"
  cp "$list" "$done_file"
done
# A build of torch with CUDA asks for libraries of its own, which the lists leave out.
if [ -z "${PYTHON:-}" ] && ! .venv/bin/python -c 'import torch' 2> /dev/null; then
  echo "setup: this build of torch needs its CUDA packages" >&2
  # shellcheck disable=SC2086
  .venv/bin/python -m pip install --quiet --disable-pip-version-check ${PIP_ARGS:-} "$(grep '^torch==' tools/requirements.txt)"
fi
