"""bucket_sizes.py COMMAND...: the step of `collectives.bucket: auto` is predicted to take no longer than that of any of
five constants. Prints the times, and `auto SIZE ... of the best constant, ... of the slowest`."""
import json
import subprocess
import sys

CONSTANTS = ["64KiB", "1MiB", "4MiB", "25MiB", "256MiB"]


def report(size):
    command = [*sys.argv[1:], "--set", f"collectives.bucket={size}"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


auto = report("auto")
steps = {size: report(size)["prediction"]["step_ns"] for size in CONSTANTS}
step, choice = auto["prediction"]["step_ns"], auto["bucket"]
print("auto", choice["size"], "bytes of", choice["sizes"], "sizes:", step, "ns; constants", steps)
assert step == choice["ns"], "the chosen size is compiled otherwise"
assert steps["25MiB"] == choice["default_ns"], "the default is compiled otherwise"
assert step <= min(steps.values()), "a constant is faster"
best, slowest = step / min(steps.values()), step / max(steps.values())
print(f"auto takes {best:.3f} of the best constant, {slowest:.3f} of the slowest")
