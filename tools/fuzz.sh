#!/usr/bin/env bash
# Fuzzes what users bring, with the address and undefined-behaviour sanitizers:
#   tools/fuzz.sh model|plan [SECONDS] [FOLDER...]
# builds the fuzzer in build-fuzz/ and runs it for SECONDS (60) from the corpus of the repository and the files of the
# folders, e.g. ONNX's node tests. New inputs go to build-fuzz/corpus-NAME, what breaks Par to build-fuzz/found-NAME-*.
set -euo pipefail
case "${1:-}" in
model | plan) what=$1 ;;
*) sed -n '2,5s/^# //p' "$0" >&2; exit 2 ;;
esac
seconds=${2:-60}
shift $(($# > 2 ? 2 : $#))
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-fuzz
[ -f "$build/build.ninja" ] || cmake -G Ninja -S "$root" -B "$build" -DPAR_FUZZ=ON >/dev/null
ninja -C "$build" "par-fuzz-$what" >"$build/build.log" || { tail -n 40 "$build/build.log" >&2; exit 1; }
mkdir -p "$build/corpus-$what"
declare -A seeds=([model]="$root/test/Onnx/Inputs/nodes $root/test/Models/mlp" [plan]="$root/test/Fuzz/plans $root/examples $root/share/plans")
export UBSAN_OPTIONS=print_stacktrace=1
options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=60000 -print_final_stats=1)
[ "$what" = plan ] && options+=(-dict="$root/test/Fuzz/plan.dict")
# shellcheck disable=SC2086  # a list of folders
exec "$build/bin/par-fuzz-$what" "${options[@]}" -artifact_prefix="$build/found-$what-" "$build/corpus-$what" ${seeds[$what]} "$@"
