# Two commands do everything on a fresh Debian 12: `make run` and `make test`.

JOBS ?= $(shell nproc)
RENKEI = build/bin/renkei
# make PYTHON=/path/to/python builds against the torch that this Python has; without it .venv gets one.
VENV_PYTHON = .venv/bin/python
export PIP_ARGS PYTHON

.PHONY: help setup build run test test-all test-sanitizers test-network test-slurm bench lint format install clean

help:
	@echo "make run      a small real training run: draws images, trains LeNet on 2 ranks, reports"
	@echo "make test     build and run all tests, with sanitizers where they apply"
	@echo "make test-all       also the slow ones: every network from a file"
	@echo "make test-network   training over several emulated hosts; needs root"
	@echo "make test-slurm     jobs through a Slurm of virtual nodes; needs root"
	@echo "make setup    install the Debian and Python packages that are missing"
	@echo "make build    build $(RENKEI)"
	@echo "make bench    measure against the peers on this machine"
	@echo "make lint     formatting, clang-tidy on changed files, warnings as errors"
	@echo "make install  install into PREFIX (default /usr/local)"
	@echo "make clean    remove what was built"

setup:
	@tools/setup.sh

build/build.ninja: | setup
	@cmake --preset release $(if $(PYTHON),-DRENKEI_PYTHON=$(PYTHON))

build: setup build/build.ninja
	@$(if $(PYTHON),cmake --preset release -DRENKEI_PYTHON=$(PYTHON) > /dev/null)
	@cmake --build build -j $(JOBS)
	@cmake --build build --target install_python

run: build
	@[ -d data/shapes ] || $(RENKEI) data synth data/shapes --images 8000 --test-images 1000
	$(RENKEI) train --model lenet --data data/shapes -n 2 --batch 64 --epochs 8 \
	  --set train.lr=0.03 --set train.momentum=0.9
	@echo "Where the time went, as a page for any browser:"
	@ls -d runs/*/report.html | tail -n 1

test: build
	@ctest --preset release -j $(JOBS) -LE slow
	@if [ -f build-asan/passed ] && [ -z "$$(find src tests cmake CMakeLists.txt -newer build-asan/passed -print -quit)" ]; \
	then echo "sanitizers: they passed and no file has changed since; make test-sanitizers runs them again"; \
	else $(MAKE) --no-print-directory test-sanitizers; fi

test-all: test
	@ctest --preset release -j $(JOBS) -L slow

# The folders without Torch, under the address, undefined-behaviour and thread sanitizers; without the tests
# that spend their time in Python.
test-sanitizers: setup
	@for preset in asan tsan; do \
	  [ -f build-$$preset/build.ninja ] || cmake --preset $$preset > /dev/null || exit 1; done
	@cmake --build build-asan -j $(JOBS)
	@ctest --preset asan -j $(JOBS) -LE slow -E "torchvision|_pt2|eager|effects|lists"
	@cmake --build build-tsan -j $(JOBS) --target test_comm test_data test_staging
	@ctest --preset tsan -j $(JOBS)
	@touch build-asan/passed

# Training over three emulated hosts (network namespaces): needs root.
test-network: build
	@cd tests/network && RENKEI=$(CURDIR)/$(RENKEI) $(CURDIR)/$(VENV_PYTHON) network_test.py

# Jobs through a Slurm of four virtual nodes that the test starts: needs root.
test-slurm: build
	@tools/setup.sh tools/packages-slurm.txt
	@cd tests/slurm && RENKEI=$(CURDIR)/$(RENKEI) $(CURDIR)/$(VENV_PYTHON) slurm_test.py

bench: build
	@bench/run.sh

lint: setup
	@tools/lint.sh

format:
	@git ls-files '*.h' '*.cpp' | xargs clang-format -i

install: build
	@cmake --install build $(if $(PREFIX),--prefix $(PREFIX))

clean:
	@rm -rf build build-*
