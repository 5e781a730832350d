"""Runs a command with more and more address space until it succeeds. Checks that each failure before is a plain error,
and prints the first one."""
import resource
import subprocess
import sys

said = ""
for mebibytes in range(200, 4000, 6):
    limit = mebibytes << 20
    done = subprocess.run(sys.argv[1:], capture_output=True, text=True, errors="replace",
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    if done.returncode == 0:
        break
    loaded = done.returncode != 127  # else a shared library was not
    assert not loaded or (done.returncode == 1 and "out of memory" in done.stderr), f"{mebibytes} MiB: {done}"
    said = said or (done.stderr if loaded else "")
print(said)
