#!/usr/bin/env bash
# Everything that is measured against a peer, one after the other; training takes most of the time.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh tools/packages-bench.txt
bench/collectives.py --ranks 2
bench/collectives.py --ranks 4 --sizes '64KiB:64MiB:*4'
bench/training.py
bench/training.py --ranks 1 --threads 2 --peers eager --models alexnet,resnet50,inception_v3,vgg16
bench/switches.py
bench/data.py loader
[ "$(id -u)" -eq 0 ] && bench/data.py archive || echo "bench/data.py archive needs root"
bench/data.py size
bench/planning.py
bench/pipeline.py
[ "$(id -u)" -eq 0 ] && bench/network.py || echo "bench/network.py needs root"
