#!/usr/bin/env python3
"""Attacks on Par and accidents, many times each: runs the trials of this folder and prints one table.

    trust.py --bin build/bin [--seed S] [--scale F] [--only KIND]...

Each kind is a script beside this one, KIND.py --count N --seed S --bin FOLDER. It prints each failure and how to repeat
it, and as its last line one object of JSON: {"kind", "trials", "crashes", "hangs", "wrong", "unnamed"}. `hangs` are
trials without an end for 10 s, `wrong` those with a false load, run or report, `unnamed` messages that do not name the
culprit.
--scale multiplies the counts (0.01 for a quick look). Exit status 1 if one of these numbers is not 0, or a script
broke.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

from trials import FAULTS

HERE = pathlib.Path(__file__).resolve().parent
# Trials of each kind in a full run.
COUNTS = {"files": 500, "saves": 500, "bundles": 1000, "launches": 100, "signals": 50, "limits": 200, "words": 200}


def run_kind(kind, count, seed, folder):
    """The counts of one kind's script, whose other lines are passed on; None where it ended without counts."""
    command = [sys.executable, str(HERE / f"{kind}.py"), "--count", str(count), "--seed", str(seed), "--bin", folder]
    print("+", " ".join(command), flush=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        last = ""
        for line in process.stdout:
            if last:
                print(last, flush=True)
            last = line.rstrip()
    try:
        counts = json.loads(last)
        return counts if isinstance(counts, dict) and all(key in counts for key in ["trials", *FAULTS]) else None
    except ValueError:
        print(last)
        return None


def main():
    """Runs the kinds and prints their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, metavar="FOLDER", help="where par-compile, par-run and par-verify are")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", action="append", choices=COUNTS, help="this kind alone; may be given several times")
    arguments = parser.parse_args()
    rows, failed = [], False
    for kind in arguments.only or COUNTS:
        start = time.monotonic()
        counts = run_kind(kind, max(1, round(COUNTS[kind] * arguments.scale)), arguments.seed, arguments.bin)
        seconds = time.monotonic() - start
        failed |= counts is None or any(counts[fault] for fault in FAULTS)
        rows.append((kind, counts, seconds))
    print(f"\nseed {arguments.seed}")
    print(f"{'kind':10}{'trials':>8}" + "".join(f"{fault:>9}" for fault in FAULTS) + f"{'seconds':>9}")
    for kind, counts, seconds in rows:
        if counts is None:
            print(f"{kind:10}  broke: its last line is no object with the counts")
        else:
            print(f"{kind:10}{counts['trials']:8}" + "".join(f"{counts[fault]:9}" for fault in FAULTS)
                  + f"{seconds:9.0f}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
