"""Reads a trace of par-run: prints the names of processes and the slots of step 2; asserts that each event is whole."""
import json
import sys

events = json.load(open(sys.argv[1]))["traceEvents"]
names = {(e["pid"], e.get("tid")): e["args"]["name"] for e in events if e["ph"] == "M"}
for (pid, tid), name in sorted(names.items(), key=str):
    if tid is None:
        print(f"process {pid}: {name}")
slots = {}
for event in events:
    assert event["ph"] in "MXBE", event
    if event["ph"] == "M":
        assert event["name"] in ("process_name", "thread_name"), event
        continue
    assert (event["pid"], event["tid"]) in names and event["args"]["step"] in (2, 3) and event["ts"] > 0, event
    if event["ph"] == "X":
        assert event["dur"] >= 0 and event["cat"] and ":" in event["name"], event
        if (slot := event["args"].get("slot")):
            assert slot[0] in "FBW" and slot[1:] == str(event["args"]["microbatch"]), event
    elif event["args"]["step"] == 2:
        slots.setdefault(event["pid"], []).append(event)
for pid, many in sorted(slots.items()):
    begun, shown = [], []
    for event in many:
        assert event["tid"] == "schedule", event
        if event["ph"] == "B":
            begun.append(event)
            shown.append(event["name"])
        else:
            first = begun.pop()
            assert first["name"] == event["name"] and first["ts"] <= event["ts"], (first, event)
    assert not begun
    print(f"rank {pid} slots: {' '.join(shown)}")
