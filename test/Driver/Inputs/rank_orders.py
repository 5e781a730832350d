"""rank_orders.py AXES -- COMMAND...: the step of `mesh_order: auto` is predicted to take no longer than that of any
order of the axes. Prints a line for each order, and `auto AXES, 1st of N`."""
import itertools
import json
import subprocess
import sys

axes, command = sys.argv[1].split(","), sys.argv[3:]


def report(order):
    run = subprocess.run([*command, "--set", f"mesh_order={order}"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


auto = report("auto")
steps = {}
for order in itertools.permutations(axes):
    steps[order] = report("[" + ", ".join(order) + "]")["prediction"]["step_ns"]
    print(", ".join(order), steps[order], "ns")
chosen, best = tuple(auto["order"]["axes"]), min(steps.values())
assert auto == report("auto"), "not the same twice"
assert auto["prediction"]["step_ns"] == steps[chosen], "the chosen order is compiled otherwise"
place = 1 + sum(step < steps[chosen] for step in steps.values())
print("auto", ", ".join(chosen), "is number", place, "of", len(steps), "slowest / chosen",
      round(max(steps.values()) / best, 2))
