"""Says in what the two plans of `par-compile --what-if ... --json` differ: a key, bytes of states."""
import json
import sys

report = json.load(open(sys.argv[1]))
if report["code"]:
    parts = [side for side in ("before", "after") if "memory" in report.get(side, {})]
    print(f"code {report['code']}, {' and '.join(parts)} but not after: {report['findings'][-1]['message']}")
    sys.exit()
keys = [{key["key"]: key["value"] for key in report[side]["keys"]} for side in ("before", "after")]
print("zero.level: {} before, {} after".format(*(key.get("zero.level", "none") for key in keys)))
states = [report[side]["memory"]["roles"][0]["states"] for side in ("before", "after")]
assert states[1] < states[0] and report["before"]["prediction"]["step_ns"] > 0 and report["after"]["collectives"]
print("states: {} bytes before, {} after".format(*states))
