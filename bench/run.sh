#!/usr/bin/env bash
# Everything that is measured against a peer, one after the other; training takes most of the time.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh tools/packages-bench.txt
python=.venv/bin/python
$python bench/collectives.py --ranks 2
$python bench/collectives.py --ranks 4 --sizes '64KiB:64MiB:*4'
$python bench/training.py
$python bench/training.py --ranks 1 --threads 2 --networks alexnet,resnet50,inception_v3,vgg16
$python bench/compile.py
$python bench/switches.py
$python bench/data.py loader
if [ "$(id -u)" -eq 0 ]; then $python bench/data.py archive; else echo "bench/data.py archive needs root"; fi
$python bench/data.py size
$python bench/planning.py
$python bench/pipeline.py
if [ "$(id -u)" -eq 0 ]; then $python bench/network.py; else echo "bench/network.py needs root"; fi
