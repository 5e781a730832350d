#!/usr/bin/env bash
# Looks for values that are read after they were moved away, and for views of what is gone:
#   tools/tidy.sh [FILE.cpp...]
# in these files, by default all of lib/, runtime/ and tools/ (an hour). Needs a build in build/ and a clang-tidy of 16 or later
# ($CLANG_TIDY; pip install clang-tidy). Exits 1 where it finds something. The compiler warns of the plainer cases in every
# build: -Wdangling is on by default, and nothing here turns it off.
set -euo pipefail
cd "$(dirname "$0")/.."
tidy=${CLANG_TIDY:-clang-tidy}
version=$("$tidy" --version | sed -n 's/.*version \([0-9]*\).*/\1/p' | head -n 1) || true
[ "${version:-0}" -ge 16 ] || { echo "tidy.sh: $tidy is version ${version:-unknown}, 16 or later is needed (CLANG_TIDY)" >&2; exit 2; }
[ -f build/compile_commands.json ] || { echo "tidy.sh: there is no build/compile_commands.json; run tools/build.sh" >&2; exit 2; }
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
          if (os.path.realpath(entry["file"]) in wanted if wanted else os.path.realpath(entry["file"]).startswith(rooms))]
missing = wanted - {os.path.realpath(entry["file"]) for entry in chosen}
if missing:
    sys.exit("tidy.sh: the build compiles no " + ", ".join(sorted(missing)))
for entry in chosen:
    entry["command"] = re.sub(r"-Xclang -include-pch -Xclang \S+|-Xclang -include -Xclang \S+|-Xclang -f[a-z-]*pch[a-z-]*|-Winvalid-pch", "",
                              entry["command"])
json.dump(chosen, open(work + "/compile_commands.json", "w"))
open(work + "/files", "w").write("".join(name + "\n" for name in sorted({entry["file"] for entry in chosen})))
EOF
checks='-*,bugprone-use-after-move,bugprone-dangling-handle,clang-diagnostic-dangling*,clang-diagnostic-return-stack-address'
if xargs -a "$work/files" -r -n 1 "$tidy" --quiet -p "$work" "--checks=$checks" --warnings-as-errors='*' 2>"$work/said"; then
  echo "tidy.sh: nothing found in $(wc -l <"$work/files") files"
else
  exit 1
fi
