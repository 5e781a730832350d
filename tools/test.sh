#!/usr/bin/env bash
# Installs what is missing, builds, runs the whole test suite, and ends with a line "N passed, N failed".
# tools/test.sh long: the long targets too (mutations, kills, random plans at full size).
set -uo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh || { echo "0 passed, 1 failed"; exit 1; }
# Report/page.test needs a browser; a build does not.
if ! command -v chromium >/dev/null && [ "$(id -u)" -eq 0 ]; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium >/dev/null 2>&1 ||
    echo "chromium cannot be installed: Report/page.test is left out"
fi
tools/build.sh par-test-depends || { echo "the build failed"; echo "0 passed, 1 failed"; exit 1; }

lit=(--param "none=1")
[ "${1:-}" = long ] && lit=(--param "long=1")
export PAR_LONG=$([ "${1:-}" = long ] && echo 1 || echo 0)
log=$(mktemp) fallen=$(mktemp) said=$(mktemp)
trap 'rm -f "$log" "$fallen" "$said"' EXIT
# The last 30 lines of each failed test, which begins and ends at such lines of the log. They are told again at the end:
# of a long log only that is kept.
keep_said() {
  awk -v begins="$1" -v ends="$2" '
    function tell(i) { for (i = n > 30 ? n - 30 : 0; i < n; ++i) print lines[i]; inside = n = 0 }
    inside && $0 ~ ends { tell() }
    $0 ~ begins { inside = 1; print; next }
    inside { lines[n++] = $0 }
    END { tell() }' "$log" | cut -c1-400 >>"$said"
}

"$(sed -n 's/^PAR_LIT:FILEPATH=//p' build/CMakeCache.txt)" -v "${lit[@]}" build/test 2>&1 | tee "$log"
lit_status=${PIPESTATUS[0]}
# lit ends with "  Passed: 12 (85.71%)", one such line a kind of outcome.
outcome() { sed -n "s/^ *$1 *: *\([0-9][0-9]*\).*/\1/p" "$log" | tail -n 1; }
passed=$(($(outcome Passed) + 0))
failed=0
for kind in Failed "Unexpectedly Passed" "Timed Out" Unresolved; do
  failed=$((failed + $(outcome "$kind") + 0))
done
[ "$lit_status" -ne 0 ] && [ "$failed" -eq 0 ] && failed=1
# "FAIL: Par :: Report/page.test (3 of 452)"
sed -nE 's/^(FAIL|XPASS|TIMEOUT|UNRESOLVED): ([^(]*).*/failed: \2/p' "$log" >"$fallen"

keep_said "^[*]+ TEST '.*' FAILED [*]+$" '^[*]+$'

# Tests of the runtime's timing run apart from those that compute; they mostly wait.
run_ctest() {
  ctest --test-dir build --output-on-failure "$@" 2>&1 | tee "$log"
  local status=${PIPESTATUS[0]} total bad
  # "  100 - Runtime.Comm.Restarts.NoneLeft (Failed)"
  sed -nE '/[(](Skipped|Disabled)[)]$/d; s/^[[:space:]]*[0-9]+ - (.*) \(.*\)$/failed: \1/p' "$log" >>"$fallen"
  keep_said '^ *[0-9]+/[0-9]+ Test +#.*[*][*][*](Failed|Exception|Timeout|Not Run)' \
    '^( +Start +[0-9]+:|[0-9]+% tests passed)'
  # ctest ends with "98% tests passed, 2 tests failed out of 100".
  total=$(sed -n 's/^.* tests failed out of \([0-9][0-9]*\)$/\1/p' "$log" | tail -n 1)
  bad=$(sed -n 's/^.* tests passed, \([0-9][0-9]*\) tests failed out of .*/\1/p' "$log" | tail -n 1)
  passed=$((passed + ${total:-0} - ${bad:-0}))
  failed=$((failed + ${bad:-0}))
  [ "$status" -ne 0 ] && [ "${bad:-0}" -eq 0 ] && failed=$((failed + 1))
}
run_ctest -j "$(nproc)" -E '^Runtime[.]'
run_ctest -j $((4 * $(nproc))) -R '^Runtime[.]'

cat "$said" "$fallen"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
