#!/usr/bin/env python3
"""Bytes and predicted time of recomputation, from none to one layer at a time, with limits in between.

    recompute.py MODEL PLAN [--layers h.*] [--limits 5] [--bin build/bin] [--set KEY=VALUE]...

The plan names no `recompute`. Each row is one call of par-compile --check; nothing is run.
"""

import argparse
import pathlib
import re
import subprocess

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
SIZE = r"([\d.]+) (B|KiB|MiB|GiB)"
ROW = re.compile(r"^  stages? \S+ \(.*?((?: +[\d.]+ (?:B|KiB|MiB|GiB)){6})", re.MULTILINE)
SAVES = re.compile(rf"^recompute \w+: stages? \S+ saves {SIZE} in place of {SIZE}, backward takes ([\d.]+) ms", re.M)
NEXT = re.compile(rf"; {SIZE} less would take ([\d.]+) ms more", re.M)
STEP = re.compile(r"^predicted step ([\d.]+) (ms|s):", re.MULTILINE)
GAP = re.compile(r"\(gap ([\d.]+) %\)")


def bytes_of(number, unit):
    return float(number) * UNITS[unit]


class Rows:
    """Rows of the largest peak's role."""

    def __init__(self, options):
        self.options = options
        print("| recompute | saved MiB | peak MiB | backward more ms | step ms | next | gap % |")
        print("| --- | --- | --- | --- | --- | --- | --- |")

    def compile(self, recompute, *more):
        command = [pathlib.Path(self.options.bin) / "par-compile", self.options.model, self.options.plan,
                   "--set", f"recompute={recompute}", "--check"]
        for setting in self.options.set:
            command += ["--set", setting]
        ended = subprocess.run([*map(str, command), *more], capture_output=True, text=True)
        if ended.returncode not in (0, 3):
            raise SystemExit(ended.stderr)
        return ended.stdout

    def add(self, recompute):
        """Bytes of the peak."""
        said = self.compile(recompute)
        row = max((re.findall(SIZE, found) for found in ROW.findall(said)), key=lambda row: bytes_of(*row[-1]))
        saves, following, step = SAVES.search(said), NEXT.search(said), STEP.search(said)
        saved = bytes_of(saves[1], saves[2]) if saves else bytes_of(*row[3])
        price = f"{following[1]} {following[2]} for {following[3]} ms" if following else ""
        time = float(step[1]) * (1000 if step[2] == "s" else 1) if step else float("nan")
        gap = GAP.search(self.compile(recompute, "--explain=memory")) if following else None
        peak = bytes_of(*row[-1])
        print(f"| `{recompute}` | {saved / (1 << 20):,.0f} | {peak / (1 << 20):,.0f} | {saves[5] if saves else ''} "
              f"| {time:,.4g} | {price} | {gap[1] if gap else ''} |", flush=True)
        return peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("plan")
    parser.add_argument("--layers", default="h.*")
    parser.add_argument("--limits", type=int, default=5)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    rows = Rows(options)
    most = rows.add("none")
    least = rows.add(f"{{each: {options.layers}}}")
    for part in range(options.limits, 0, -1):
        limit = least + (most - least) * part / (options.limits + 1)
        rows.add(f"{{memory: {int(limit) >> 20}MiB}}")
    rows.add("full")


if __name__ == "__main__":
    main()
