#!/usr/bin/env bash
# Installs what Par's build and tests need from Debian 12's own sources (LLVM 22 is in bookworm-security); nothing
# is downloaded from anywhere else. Does nothing where all of it is there. Needs root or sudo only to install.
set -euo pipefail

packages=(
  clang-22 clang-format-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools liblld-22-dev
  cmake ninja-build ccache libdnnl-dev nlohmann-json3-dev libprotobuf-dev protobuf-compiler
  libgtest-dev libgmock-dev libbenchmark-dev python3 python3-psutil zlib1g-dev libzstd-dev
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi

command -v apt-get >/dev/null ||
  { echo "setup.sh: this is not Debian (no apt-get); Par's build needs: ${missing[*]}" >&2; exit 1; }
root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    { echo "setup.sh: these packages are missing and this is not root: ${missing[*]}" >&2; exit 1; }
  root=(sudo)
fi
echo "installing: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A package list of a minute ago is as good as a new one; an update that fails may still leave a usable list.
"${root[@]}" apt-get update >"$log" 2>&1 || cat "$log" >&2
if ! "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
     apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "setup.sh: the packages cannot be installed;" \
       "they are in Debian 12 and its updates of bookworm-security (LLVM 22)" >&2
  exit 1
fi
