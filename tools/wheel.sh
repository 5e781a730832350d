#!/usr/bin/env bash
# tools/wheel.sh [BUILD [OUT]]: makes OUT/par-VERSION-py3-none-manylinux_...whl from the build folder BUILD (build): the
# Python package with its programs and libraries in par/native, and every library that they need, so that nothing else
# is installed to compile, run and serve. Its tag names the glibc that it needs. OUT is BUILD/wheel. Needs
# patchelf, and a Python (PYTHON) with pip and setuptools 70.1 or later.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
out=${2:-$build/wheel}
python=${PYTHON:-python3}
"$python" -c 'import setuptools.command.bdist_wheel' 2>/dev/null ||
  { echo "wheel.sh: $python has no setuptools 70.1 or later: pip install setuptools, or PYTHON=..." >&2; exit 1; }

rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
package=$out/package
cp -r python "$package"
rm -rf "$package"/{build,tests,*.egg-info}
find "$package" -name __pycache__ -prune -exec rm -rf {} +
for component in runtime compiler; do
  cmake --install "$build" --prefix "$package/par/native" --component "$component" >/dev/null
done
glibc=$(tools/bundle-libraries.sh "$package/par/native")
printf '[bdist_wheel]\nplat_name = manylinux_%s_%s\n' "${glibc/./_}" "$(uname -m)" >"$package/setup.cfg"
"$python" -m pip wheel --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation \
  -w "$out" "$package"
rm -rf "$package"
ls -l "$out"/*.whl | awk '{printf "%s %.1f MB\n", $9, $5 / 1e6}'
