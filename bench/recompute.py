#!/usr/bin/env python3
"""Bytes and predicted time of recomputation: none, each layer, the whole forward, and limits between none and each.

    recompute.py MODEL PLAN [--layers h.*] [--limits 5] [--bin build/bin]

PLAN has no `recompute`. A row is one call of par-compile --check; nothing is run. Rows are of the role with the largest
peak.
"""

import argparse
import json
import pathlib
import subprocess

MIB = 1 << 20


class Table:
    def __init__(self, options):
        self.options = options
        print("| recompute | saved MiB | peak MiB | backward more ms | of them chosen (gap) | less for ms | step ms |")
        print("| --- | --- | --- | --- | --- | --- | --- |")

    def compile(self, recompute):
        command = [pathlib.Path(self.options.bin) / "par-compile", self.options.model, self.options.plan, "--set",
                   f"recompute={recompute}", "--check", "--json"]
        ended = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if ended.returncode not in (0, 3):
            raise SystemExit(ended.stdout + ended.stderr)
        return json.loads(ended.stdout)

    def add(self, recompute):
        """The report, and bytes of the peak."""
        report = self.compile(recompute)
        role = max(report["memory"]["roles"], key=lambda role: role["peak"])
        facts = report["recompute"]
        stage = next((stage for stage in facts["roles"] if stage["role"] == role["role"]), {})
        ms = facts["microbatches"] / 1e6
        chosen, price = "", ""
        if stage.get("chosen_ns"):
            gap = 100 * (stage["chosen_ns"] - stage["min_ns"]) / stage["chosen_ns"]
            chosen = f"{stage['chosen_ns'] * ms:.3f} ({gap:.2f} %)"
            if stage["next_ns"] >= 0:
                price = f"{stage['next_bytes'] / MIB:,.0f} MiB for {stage['next_ns'] * ms:.3f}"
        saved = f"{stage['saved_bytes'] / MIB:,.1f}" if stage else ""
        more = f"{stage['ns'] * ms:.3f}" if stage else ""
        step = f"{report['prediction']['step_ns'] / 1e6:,.2f}" if "prediction" in report else "exit 3"
        peak = f"{role['peak'] / MIB:,.1f}"
        print(f"| `{recompute}` | {saved} | {peak} | {more} | {chosen} | {price} | {step} |", flush=True)
        return role["peak"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("plan")
    parser.add_argument("--layers", default="h.*")
    parser.add_argument("--limits", type=int, default=5)
    parser.add_argument("--bin", default="build/bin")
    options = parser.parse_args()
    table = Table(options)
    most = table.add("none")
    least = table.add(f"{{each: {options.layers}}}")
    for part in range(options.limits, 0, -1):
        limit = least + (most - least) * part / (options.limits + 1)
        table.add(f"{{memory: {int(limit) >> 20}MiB}}")
    table.add("full")


if __name__ == "__main__":
    main()
