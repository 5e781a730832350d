#!/usr/bin/env bash
# Runs clang-tidy 16 or later ($CLANG_TIDY; Debian: clang-tidy-22) on a build in build/; exits 1 if it finds anything:
#   tools/tidy.sh [FILE.cpp...]        values read after they were moved away, views of what is gone, in these files;
#                                      without any, in lib/, runtime/ and tools/ (an hour)
#   tools/tidy.sh --changed [BASE]     in the .cpp files changed since BASE (origin/main), also the cheap checks of form
# Each file is parsed whole, with MLIR's headers: 5 to 15 s, whatever the check. The suite, which has 6 minutes, runs
# clang-format and tools/house.py instead; before a push --changed takes a minute. Its checks of form are those of
# .clang-tidy that match only the syntax tree (no data flow): unused usings, ends of namespaces, copies in loops.
set -euo pipefail
cd "$(dirname "$0")/.."
tidy=${CLANG_TIDY:-clang-tidy}
version=$("$tidy" --version | sed -n 's/.*version \([0-9]*\).*/\1/p' | head -n 1) || true
[ "${version:-0}" -ge 16 ] ||
  { echo "tidy.sh: $tidy is version ${version:-unknown}, 16 or later is needed (CLANG_TIDY)" >&2; exit 2; }
checks='-*,bugprone-use-after-move,bugprone-dangling-handle'
checks+=',clang-diagnostic-dangling*,clang-diagnostic-return-stack-address'
if [ "${1:-}" = --changed ]; then
  checks+=',misc-unused-using-decls,llvm-namespace-comment,performance-for-range-copy'
  base=$(git merge-base "${2:-origin/main}" HEAD)
  mapfile -t changed < <(git diff --name-only --diff-filter=d "$base" -- 'lib/*.cpp' 'runtime/*.cpp' 'tools/*.cpp')
  [ ${#changed[@]} -gt 0 ] || { echo "tidy.sh: no .cpp file changed since $base"; exit 0; }
  set -- "${changed[@]}"
fi
[ -f build/compile_commands.json ] ||
  { echo "tidy.sh: there is no build/compile_commands.json; run tools/build.sh" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Without the precompiled headers, which another version of clang does not read.
python3 - "$work" "$@" <<'EOF'
import json, os, re, sys
work, *wanted = sys.argv[1:]
commands = json.load(open("build/compile_commands.json"))
wanted = {os.path.realpath(name) for name in wanted}
rooms = tuple(os.path.realpath(room) + "/" for room in ("lib", "runtime", "tools"))
chosen = [entry for entry in commands
          if (os.path.realpath(entry["file"]) in wanted if wanted
              else os.path.realpath(entry["file"]).startswith(rooms))]
missing = wanted - {os.path.realpath(entry["file"]) for entry in chosen}
if missing:
    sys.exit("tidy.sh: the build compiles no " + ", ".join(sorted(missing)))
for entry in chosen:
    entry["command"] = re.sub(r"-Xclang -include-pch -Xclang \S+|-Xclang -include -Xclang \S+|"
                              r"-Xclang -f[a-z-]*pch[a-z-]*|-Winvalid-pch", "", entry["command"])
json.dump(chosen, open(work + "/compile_commands.json", "w"))
open(work + "/files", "w").write("".join(name + "\n" for name in sorted({entry["file"] for entry in chosen})))
EOF
if xargs -a "$work/files" -r -n 1 "$tidy" --quiet -p "$work" "--checks=$checks" --warnings-as-errors='*' \
   2>"$work/said"; then
  echo "tidy.sh: nothing found in $(wc -l <"$work/files") files"
else
  exit 1
fi
