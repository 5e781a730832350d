#!/usr/bin/env bash
# tools/runtime-tarball.sh [BUILD [OUT]]: makes OUT/par-runtime-VERSION-glibc...tar.xz from the build folder BUILD
# (build): what a machine needs that only runs bundles, on CPUs or GPUs: par-run, par-verify, libpar-runtime.so and the
# libraries that they need. OUT is BUILD/tarball. Needs patchelf.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
out=${2:-$build/tarball}
version=$(sed -n 's/^#define PAR_VERSION "\(.*\)"/\1/p' runtime/include/par/format/Version.h)

rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
folder=par-runtime-$version
mkdir -p "$out/$folder"
cmake --install "$build" --prefix "$out/$folder" --component runtime >/dev/null
glibc=$(tools/bundle-libraries.sh "$out/$folder")
tarball=$folder-glibc$glibc-$(uname -m).tar.xz
tar -C "$out" -cJf "$out/$tarball" "$folder"
rm -rf "${out:?}/$folder"
ls -l "$out/$tarball" | awk '{printf "%s %.1f MB\n", $9, $5 / 1e6}'
