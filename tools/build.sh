#!/usr/bin/env bash
# Configures Par in build/ and builds the given targets (all without any) with as many jobs as the machine has cores,
# quietly; the whole log is build/build.log. Files are compiled in batches of eight (CMake's unity build), which takes
# about half the time. To work on Par, where a change should recompile one file, configure build/ before:
#   cmake -G Ninja -S . -B build
# A folder that is configured stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
if [ ! -f build/build.ninja ]; then
  launcher=()
  if command -v ccache >/dev/null; then
    # clang's precompiled header and ccache agree only with these settings.
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache
              "-DCMAKE_CXX_FLAGS=-Xclang -fno-pch-timestamp")
  fi
  cmake -G Ninja -S . -B build -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=8 "${launcher[@]}" \
    >build/build.log 2>&1 || { tail -n 40 build/build.log >&2; exit 1; }
fi
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
start=$SECONDS
echo "building with $(nproc) jobs, which takes a while from nothing; build/build.log tells how far"
ninja -C build -j "$(nproc)" "$@" >>build/build.log 2>&1 ||
  { grep -E -A12 'FAILED|error:' build/build.log | tail -n 60 >&2; exit 1; }
echo "built in $((SECONDS - start)) s"
