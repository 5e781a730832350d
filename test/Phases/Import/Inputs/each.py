"""Imports every model of a test file in turn and prints what par-opt says, so that one test can refuse many.

    each.py TEST FOLDER           a model begins with `#--- NAME`; a line `options train=true` in it goes to the pass
"""
import pathlib
import re
import subprocess
import sys

from encode import encode

for part in re.split(r"^#--- ", open(sys.argv[1]).read(), flags=re.M)[1:]:
    name, *lines = part.splitlines()
    file = pathlib.Path(sys.argv[2]) / f"{name}.onnx"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encode(lines))
    options = "".join(line.removeprefix("options") for line in lines if line.startswith("options "))
    run = subprocess.run(["par-opt", f"--par-read-onnx=model={file.name}{options}", "-"], input="module {}", text=True,
                         cwd=file.parent, capture_output=True)
    print(f"{run.stderr}{name}: exit status {run.returncode}", flush=True)
