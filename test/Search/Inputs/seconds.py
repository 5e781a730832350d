"""seconds.py PLAN -- COMMAND -- SEARCH...: SEARCH, whose result was written as PLAN, says by how much a step is slower
with the second value of each key. If both plans were compiled and differ in no other key, `COMMAND PLAN --what-if`
of that value has the same two steps, to a thousandth of a percent."""
import json
import subprocess
import sys


def run(command):
    return json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout)


def main():
    marks = [at for at, word in enumerate(sys.argv) if word == "--"]
    plan, command, search = sys.argv[1], sys.argv[marks[0] + 1:marks[1]], sys.argv[marks[1] + 1:]
    reasons = run([*search, "--check"])["search"]["reasons"]
    found = 0
    for reason in reasons:
        if "second" not in reason or "others" in reason or not reason["compiled"]:
            continue
        if reason["key"] not in ("zero.level", "pipeline.schedule", "batch.microbatches"):
            continue
        flags = [f"--what-if={reason['key']}={reason['second']}"]
        if reason["key"] == "batch.microbatches":
            flags.append("--what-if=batch.microbatch_size=null")
        both = run([*command, plan, *flags])
        before, after = (both[side]["prediction"]["step_ns"] for side in ("before", "after"))
        slower = 100 * (after - before) / before
        assert abs(slower - reason["slower_percent"]) < 1e-3, f"{reason}: {slower} % by --what-if"
        found += 1
    print(f"{found} of {len(reasons)} reasons, as --what-if has them")


main()
