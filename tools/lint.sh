#!/usr/bin/env bash
# Formatting of all files, ruff on Python, clang-tidy on the changed C++ files (against the branch that a change will be
# merged into, or the files given), and a build in which every warning is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

git ls-files '*.h' '*.cpp' | xargs clang-format --dry-run --Werror
git ls-files '*.py' | xargs .venv/bin/ruff check --quiet
.venv/bin/mypy --no-error-summary --cache-dir build/mypy

[ -f build/build.ninja ] || cmake --preset release > /dev/null
base=$(git merge-base HEAD origin/main 2> /dev/null || git rev-parse 'HEAD~1' 2> /dev/null || true)
if [ "$#" -gt 0 ]; then
  changed=("$@")
else
  mapfile -t changed < <({ git diff --name-only --diff-filter=d "${base:-HEAD}" -- 'src/*.cpp'
                           git ls-files --others --exclude-standard -- 'src/*.cpp'; } | sort -u)
fi
# Files that include Torch take a minute each and its macros drown the findings: leave them out.
mapfile -t tidy < <(printf '%s\n' "${changed[@]}" | grep -vE '^src/run/|^src/job/(checkpoints|choose_plan|measured_graph|prediction|session)\.cpp$|^src/cli/(bench_compute|bench_pipeline|evaluate|predict|settings|train)\.cpp$|^$' || true)
if [ "${#tidy[@]}" -gt 0 ]; then
  echo "clang-tidy: ${#tidy[@]} files"
  printf '%s\0' "${tidy[@]}" | xargs -0 -n 1 -P "$(nproc)" \
    clang-tidy -p build --quiet --extra-arg=-Wno-unknown-warning-option --warnings-as-errors='*' 2> /dev/null
fi
cmake --build build -j "$(nproc)" | tail -n 1
echo "lint: clean"
