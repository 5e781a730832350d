#!/usr/bin/env python3
"""Holds the flags that docs/plan.md §3 and docs/roadmap.md name against those of the tools.

    page_flags.py [--page docs/plan.md] [--roadmap docs/roadmap.md]   (par-compile, par-run and par-verify on the PATH)

A flag in the part of a tool (3.1 to 3.3) is one of a --help, and each flag of a tool's --help stands in its part or at
the top of §3. A flag of the tool's table in the roadmap is refused as "not supported yet" (exit 2) and stands in no
part.
Exit 0: all hold.
"""

import argparse
import re
import subprocess

from page_plans import PAGE, ROADMAP, read_section
from runs import Claims

TOOLS = {"3.1": "par-compile", "3.2": "par-run", "3.3": "par-verify"}
OTHERS = {"--nproc-per-node", "--no-python", "--run-reproducer"}  # torchrun's and mlir-opt's, in samples


def read_parts(page):
    """Number of a part of §3 -> its text; "3" is what stands before the first part."""
    text = read_section(page, 3)
    pieces = re.split(r"^### (3\.\d) ", text, flags=re.M)
    return {"3": pieces[0], **dict(zip(pieces[1::2], pieces[2::2]))}


def flags_in(text):
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", text))


def later_flags(roadmap, tool):
    """The flags in the first column of the tool's table; none where all are built."""
    section = re.search(rf"^## Flags of {tool}$.*?(?=^## |\Z)", roadmap, re.M | re.S)
    rows = re.findall(r"^\| (`.*?) \|", section[0], re.M) if section else []
    return {flag for row in rows for flag in re.findall(r"`(-[-a-z]*)`", row)}


def help_of(tool):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*",
                          subprocess.run([tool, "--help"], capture_output=True, text=True).stdout))


def refused(tool, flag):
    """Whether the tool knows the flag and says that it is not built."""
    done = subprocess.run([tool, "none", flag, "1"], capture_output=True, text=True)
    return done.returncode == 2 and "not supported yet" in done.stderr


def check(claims, parts, roadmap, number, tool):
    named, known = flags_in(parts[number]), help_of(tool)
    others = OTHERS.union(*map(help_of, TOOLS.values()))
    claims.equal(f"{tool}: flags of {number} that no --help has", sorted(named - others), [])
    claims.equal(
        f"{tool}: flags of --help that {number} does not have", sorted(known - named - flags_in(parts["3"])), []
    )
    if tool == "par-verify":
        return
    later = later_flags(roadmap, tool)
    claims.equal(
        f"{tool}: flags of the roadmap that are not refused", sorted(f for f in later if not refused(tool, f)), []
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", default=PAGE)
    parser.add_argument("--roadmap", default=ROADMAP)
    options = parser.parse_args()
    claims, parts, roadmap = Claims(), read_parts(open(options.page).read()), open(options.roadmap).read()
    for number, tool in TOOLS.items():
        check(claims, parts, roadmap, number, tool)
    claims.finish()


if __name__ == "__main__":
    main()
