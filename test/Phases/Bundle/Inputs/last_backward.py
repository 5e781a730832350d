"""Prints what the last backward of a role does after its last kernel: sends, reductions, waits of compute."""
import json
import sys

role = json.load(open(sys.argv[1]))
runs = [name for name, *_ in role["entries"]["train"]]
last = max(n for n, name in enumerate(runs) if name.startswith("train.backward")
           and not name.endswith(".ends"))
order = []
for it in role["blocks"][runs[last]]:
    if it["op"] in ("send", "coll") and it["q"] != "compute":
        order.append(it["q"])
    elif it["op"] == "wait" and it["q"] == "compute" and it["e"].startswith("done"):
        order.append("wait " + it["e"].split(".")[0])
order = [step for n, step in enumerate(order) if n == 0 or order[n - 1] != step]
print(f"in {runs[last]}:", ", ".join(order))
print("then:", ", ".join(runs[last + 1:last + 3]))
