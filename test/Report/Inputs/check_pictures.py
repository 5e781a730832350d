"""check_pictures.py REPORT.json...: what the pictures of a report show agrees with its figures."""
import json
import sys

FIELDS = "kind", "microbatch", "start", "duration", "busy", "critical", "exposed", "label"

def check(report, holds):
    timeline, prediction = report["timeline"], report["prediction"]
    step, rows = timeline["step_ns"], timeline["rows"]
    ranks = sorted(rank for row in rows for rank in row["ranks"])
    holds("each rank is in one row", ranks == list(range(report["plan"]["ranks"])))
    for row in rows:
        times = [row[key] for key in ("compute_ns", "communication_ns", "core_ns", "idle_ns")]
        holds("a row's times add up to the step", sum(times) == step)
        spans = [dict(zip(FIELDS, span)) for span in row["spans"]]
        names = [timeline["kinds"][span["kind"]] for span in spans]
        compute = [span for span, name in zip(spans, names) if name != "communication"]
        others = [span for span, name in zip(spans, names) if name == "communication"]
        holds("compute's busy times are the row's", sum(span["busy"] for span in compute) == row["compute_ns"])
        holds("spans lie in the step",
              all(0 <= span["start"] <= span["start"] + span["duration"] <= step for span in spans))
        holds("parts are not longer than spans", all(span["critical"] <= span["duration"] and span["exposed"] <=
                                                     span["duration"] for span in spans))
        holds("each has a label", all(0 <= span["label"] < len(timeline["labels"]) for span in spans))
        holds("exposed communication is at least the row's",
              sum(span["exposed"] for span in others) >= row["communication_ns"] - row["core_ns"])
        slots = {(name, span["microbatch"]) for span, name in zip(spans, names) if name in ("forward", "backward")}
        microbatches = report["plan"]["microbatches"]
        stages = row["role"].replace("s", "").count("+") + 1
        holds("each microbatch goes forward", len({slot for slot in slots if slot[0] == "forward"}) == microbatches,
              f"{slots} {stages}")
    critical = sum(span[5] for row in rows for span in row["spans"])
    holds("the longest chain takes the step", critical == step, f"{critical} of {step}")
    busy = sum(row["compute_ns"] * len(row["ranks"]) for row in rows)
    holds("compute is that of the prediction",
          abs(1000 * busy / step / report["plan"]["ranks"] - prediction["compute_permille"]) <= 1)
    bound = {role["role"]: role["peak"] for role in report["memory"]["roles"]}
    for role in report["memory_over_time"]:
        state = role["params"] + role["states"]
        most = max(state + sum(moment[1:]) for moment in role["moments"])
        holds("what lives is below the bound", most <= role["peak"] == bound[role["role"]], f"{most} {role['peak']}")
        holds("it is most of the bound", most > 0.5 * role["peak"], f"{most} {role['peak']}")
        holds("the largest are sorted, and live", [value["bytes"] for value in role["largest"]] ==
              sorted((value["bytes"] for value in role["largest"]), reverse=True) and
              sum(value["bytes"] for value in role["largest"]) <= most)
        holds("the largest have names", all(value["name"] for value in role["largest"][:3]))


failed = 0
for path in sys.argv[1:]:
    def holds(claim, true, detail=""):
        global failed
        if not true:
            failed += 1
            print(f"{path}: not so: {claim} {detail}"[:400])
    with open(path) as file:
        check(json.load(file), holds)
print(f"{len(sys.argv) - 1} reports, {failed} faults")
sys.exit(failed > 0)
