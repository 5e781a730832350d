#!/usr/bin/env bash
# Installs what is missing, builds, compiles a small GPT for eight ranks, and trains it on this repository's README:
# the two commands of README.md, with their real output.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
tools/build.sh par-compile par-compiler par-run par-verify
export PATH=$PWD/build/bin:$PATH

show() {
  echo
  echo "\$ $*"
  "$@"
}
show par-compile examples/tiny-gpt.onnx examples/3d.yaml -o demo.par
show par-run demo.par --init --text README.md --steps 200
