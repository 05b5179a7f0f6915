#!/usr/bin/env bash
# Everything that is measured against a peer; results go to stdout.
set -euo pipefail
cd "$(dirname "$0")/.."
build/bin/renkei train --model mlp --batch 64 --steps 100 --data random -n 2 --threads 1 --quiet
