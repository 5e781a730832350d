"""Gives a trace made-up times, and prints the ns of a step; or compares those with what a bundle predicts.

Each instruction takes 5 to 11 us by its place, the same on all ranks.
"""
import json
import sys

if len(sys.argv) == 3:
    expected = int(open(sys.argv[1]).read())
    predicted = json.load(open(sys.argv[2]))["predicted_ns"]
    error = abs(predicted / expected - 1)
    print(f"within 3 %: {predicted} of {expected}" if error < 0.03 else f"{predicted}, expected {expected}")
    sys.exit()
trace = json.load(open(sys.argv[1]))
now = {}
for event in trace["traceEvents"]:
    if event["ph"] != "X" or event["cat"] in ("signal", "wait"):
        continue
    of_step = now.setdefault((event["pid"], event["args"]["step"]), [0, 0])
    event["ts"] = 1e6 * event["args"]["step"] + of_step[0]
    event["dur"] = 5 + of_step[1] % 7
    of_step[0] += event["dur"]
    of_step[1] += 1
trace["traceEvents"] = [e for e in trace["traceEvents"] if e.get("cat") not in ("signal", "wait")]
json.dump(trace, open(sys.argv[1], "w"))
print(int(1000 * max(length for length, _ in now.values())))
