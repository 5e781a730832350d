"""Holds the keys and values that the plan reader refuses against the first table of the roadmap.

    refused_keys.py KEYS.md ROADMAP.md      (par-compile on the PATH)

KEYS.md is what `par-compile --print-keys` prints; its last section lists what is refused.
"""
import re
import subprocess
import sys

# A key that is refused as a whole, with a value of the kind that it will take.
SAMPLES = {"<axis>": "dp", "<pattern>": "weight"}


def is_refused(entry):
    key, _, value = entry.partition(": ")
    for sort, name in SAMPLES.items():
        key = key.replace(sort, name)
    done = subprocess.run(
        ["par-compile", "--print-plan", "--set", f"{key}={value or '{}'}"], capture_output=True, text=True
    )
    return done.returncode == 1 and "not supported yet" in done.stderr


keys, roadmap = (open(name).read() for name in sys.argv[1:])
refused = re.findall(r"`([^`]+)`", keys.split("## Refused")[1])
named = set(re.findall(r"`([^`]+)`", roadmap.split("## Keys of the plan")[1].split("## ")[0]))
lacking = [entry for entry in refused if entry not in named]
taken = [entry for entry in refused if not is_refused(entry)]
print(
    f"{len(refused)} refused keys and values, {len(lacking)} that the roadmap does not name, "
    f"{len(taken)} that are not refused"
    + (": " if lacking or taken else "")
    + " ".join(lacking + taken)
)
sys.exit(1 if lacking or taken or not refused else 0)
