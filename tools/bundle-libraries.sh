#!/usr/bin/env bash
# tools/bundle-libraries.sh FOLDER: makes FOLDER/bin and FOLDER/lib independent of the machine. Each library that they
# need is copied to FOLDER/lib and found there ($ORIGIN), but for those of the C and C++ runtime, which belong to the
# system; all of it is stripped. FOLDER/licenses gets Par's licence, and that of each library which is copied or linked
# in. Prints this machine's glibc: one as new, with the libstdc++ of its time, is needed.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: tools/bundle-libraries.sh FOLDER" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$1"
mkdir -p licenses
cp "$root/LICENSE" licenses/par
command -v patchelf >/dev/null || { echo "bundle-libraries.sh: needs patchelf (apt-get install patchelf)" >&2; exit 1; }

system='^(linux-vdso|ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libgcc_s|libstdc[+][+])[.]so'
missing=$(ldd bin/* lib/*.so* | grep 'not found' | sort -u || true)
[ -z "$missing" ] || { echo "bundle-libraries.sh: libraries that are not there: $missing" >&2; exit 1; }
# "	libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f...)"; ldd gives those of libraries too.
keep_licence() { # of a Debian package, as its copyright file
  cp -L "/usr/share/doc/$1/copyright" "licenses/$1" ||
    { echo "bundle-libraries.sh: the licence of the package $1 is not in /usr/share/doc" >&2; exit 1; }
}
ldd bin/* lib/*.so* | awk '$2 == "=>" {print $1, $3}' | sort -u | while read -r name path; do
  if ! [[ $name =~ $system ]] && [ ! -e "lib/$name" ]; then
    cp -L "$path" "lib/$name"
    keep_licence "$(dpkg -S "*/$name" | head -n 1 | cut -d : -f 1)"
  fi
done
keep_licence nlohmann-json3-dev # headers
if ls lib/libpar-compiler.so* >/dev/null 2>&1; then
  keep_licence liblld-22-dev # linked in
fi
chmod u+w bin/* lib/*.so*
for file in bin/* lib/*.so*; do
  strip --strip-unneeded "$file"
done
for file in bin/*; do
  patchelf --set-rpath "\$ORIGIN/../lib" "$file"
done
for file in lib/*.so*; do
  patchelf --set-rpath "\$ORIGIN" "$file"
done
getconf GNU_LIBC_VERSION | cut -d ' ' -f 2
