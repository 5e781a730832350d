#!/usr/bin/env bash
# Fuzzes what users bring for SECONDS (60):
#   tools/fuzz.sh model|plan|save|manifest|protocol|frame [SECONDS] [FOLDER...]
# builds the fuzzer with the address and undefined-behaviour sanitizers in build-fuzz/ and runs it from the corpus of
# the repository and the files of the folders, e.g. ONNX's node tests; `protocol` is both sides of what ranks say to
# each other, `frame` what clients say to par-run --serve. New inputs go to build-fuzz/corpus-NAME, inputs that break
# Par to build-fuzz/found-NAME-* (save, manifest, protocol and frame, which need only the runtime: in
# build-fuzz/runtime).
#   tools/fuzz.sh program [SECONDS] [BIN]
# draws a random small graph and a random plan of any kind, again and again, and runs both through the par-compile and
# par-run of BIN (build/bin; random-programs.py --mixed): a crash, a hang and a difference from one rank are printed
# with their seed and kept in build-fuzz/found-program.
set -euo pipefail
case "${1:-}" in
model | plan | save | manifest | protocol | frame | program) what=$1 ;;
*) sed -n '2,12s/^# //p' "$0" >&2; exit 2 ;;
esac
seconds=${2:-60}
shift $(($# > 2 ? 2 : $#))
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-fuzz source=$root
if [ "$what" = program ]; then
  seed=$((RANDOM * 32768 + RANDOM))
  exec python3 "$root/test/Execute/random-programs.py" --bin "${1:-$root/build/bin}" --mixed \
    --seconds "$seconds" --seed "$seed" --timeout 600 --keep "$build/found-program"
fi
clang=${CXX:-clang++-22}
[ -f "$("$clang" --print-file-name=libclang_rt.fuzzer-x86_64.a)" ] ||
  { echo "fuzz.sh: $clang has no libFuzzer; apt-get install libclang-rt-22-dev (which nothing else of Par needs)" >&2
    exit 1; }
case $what in save | manifest | protocol | frame) build=$build/runtime source=$root/runtime ;; esac
mkdir -p "$build"
# Each file is compiled once: several together take a third of the time.
[ -f "$build/build.ninja" ] ||
  cmake -G Ninja -S "$source" -B "$build" -DPAR_FUZZ=ON -DCMAKE_UNITY_BUILD=ON -DPAR_CUDA_KERNELS=OFF \
  -DCMAKE_CXX_COMPILER="$clang" -DCMAKE_C_COMPILER="${CC:-clang-22}" >/dev/null
ninja -C "$build" "par-fuzz-$what" >"$build/build.log" || { tail -n 40 "$build/build.log" >&2; exit 1; }
mkdir -p "$build/corpus-$what"
declare -A seeds=([model]="$root/test/Onnx/Inputs/nodes $root/test/Models/mlp"
                   [plan]="$root/test/Fuzz/plans $root/examples $root/share/plans"
                   [save]="" [manifest]="" [protocol]="" [frame]="$root/test/Fuzz/frames")
# A message takes tens of bytes, which are drawn as they come: whole ones are not found a byte at a time.
if [ "$what" = protocol ] && [ -z "$(ls -A "$build/corpus-protocol")" ]; then
  for i in {1..64}; do head -c 1500 /dev/urandom >"$build/corpus-protocol/seed$i"; done
fi
export UBSAN_OPTIONS=print_stacktrace=1
# A hang has no end; an unrolled Scan of 65,536 rounds takes 10 s of CPU here, and took 113 s on a machine that was
# shared.
options=(-max_total_time="$seconds" -timeout=300 -rss_limit_mb=4096 -max_len=60000 -print_final_stats=1)
[ "$what" = protocol ] && options+=(-len_control=0 -max_len=4000)
[ -f "$root/test/Fuzz/$what.dict" ] && options+=(-dict="$root/test/Fuzz/$what.dict")
# shellcheck disable=SC2086  # a list of folders
exec "$build/bin/par-fuzz-$what" "${options[@]}" -artifact_prefix="$build/found-$what-" \
  "$build/corpus-$what" ${seeds[$what]} "$@"
