#!/usr/bin/env bash
# tools/bundle-libraries.sh FOLDER: makes FOLDER/bin and FOLDER/lib independent of the machine. Each library that they
# need is copied to FOLDER/lib and found there ($ORIGIN), but for those of the C and C++ runtime, which belong to the
# system; all of it is stripped. Prints this machine's glibc: one as new, with the libstdc++ of its time, is needed.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: tools/bundle-libraries.sh FOLDER" >&2; exit 2; }
cd "$1"
command -v patchelf >/dev/null || { echo "bundle-libraries.sh: needs patchelf (apt-get install patchelf)" >&2; exit 1; }

system='^(linux-vdso|ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libgcc_s|libstdc[+][+])[.]so'
missing=$(ldd bin/* lib/*.so* | grep 'not found' | sort -u || true)
[ -z "$missing" ] || { echo "bundle-libraries.sh: libraries that are not there: $missing" >&2; exit 1; }
# "	libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f...)"; ldd gives those of libraries too.
ldd bin/* lib/*.so* | awk '$2 == "=>" {print $1, $3}' | sort -u | while read -r name path; do
  if ! [[ $name =~ $system ]] && [ ! -e "lib/$name" ]; then
    cp -L "$path" "lib/$name"
  fi
done
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
