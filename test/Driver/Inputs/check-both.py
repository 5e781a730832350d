"""check-both.py RUN BOTH: a trace of par-compile --run-trace has all events of the run, and the prediction."""
import json
import sys

run, both = (json.load(open(path))["traceEvents"] for path in sys.argv[1:])
assert both[:len(run)] == run
predicted = both[len(run):]
print(f"all {len(run)} events of the run, {len(predicted)} of the prediction")
names = {event["pid"]: event["args"]["name"] for event in both if event["name"] == "process_name"}
order = {event["pid"]: event["args"]["sort_index"] for event in both if event["name"] == "process_sort_index"}
assert set(names) == set(order), (names, order)
print("processes:", "; ".join(names[pid] for pid in sorted(names, key=order.get)))
begin = min(event["ts"] for event in predicted if event["ph"] == "X")
begins = {}
for event in run:
    if event["ph"] == "X":
        step = event["args"]["step"]
        begins[step] = min(event["ts"], begins.get(step, event["ts"]))
print("the prediction begins with step", next(step for step, at in begins.items() if abs(at - begin) < 0.01),
      "of the run")
