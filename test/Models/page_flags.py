#!/usr/bin/env python3
"""Holds the flags that docs/plan.md §3 names against those of the tools' --help.

    page_flags.py [--page docs/plan.md]        (par-compile, par-run and par-verify on the PATH)

A flag in the part of a tool (3.1 to 3.3) is one of a --help; one marked † there, and only that one, is refused as "not
supported yet" (exit 2), and §8 names it. Each flag of --help stands in the tool's part or at the top of §3. Exit 0: all
hold.
"""
import argparse
import re
import subprocess

from page_plans import PAGE, read_section
from runs import Claims

TOOLS = {"3.1": "par-compile", "3.2": "par-run", "3.3": "par-verify"}
OTHERS = {"--nproc-per-node", "--no-python", "--run-reproducer"}  # torchrun's and mlir-opt's, in samples


def read_parts(page):
    """Number of a part of §3 -> its text; "3" is what stands before the first part."""
    text = read_section(page, 3)
    pieces = re.split(r"^### (3\.\d) ", text, flags=re.M)
    return {"3": pieces[0], **dict(zip(pieces[1::2], pieces[2::2]))}


def flags_in(text):
    """The flags in a text, and those of them that are marked as not built."""
    found = {match[1]: bool(match[2]) for match in re.finditer(r"(?<![\w-])(--[a-z][a-z-]*)`?(†?)", text)}
    return set(found), {flag for flag, later in found.items() if later}


def help_of(tool):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*",
                          subprocess.run([tool, "--help"], capture_output=True, text=True).stdout))


def refused(tool, flag):
    """Whether the tool knows the flag and says that it is not built."""
    done = subprocess.run([tool, "none", flag, "1"], capture_output=True, text=True)
    return done.returncode == 2 and "not supported yet" in done.stderr


def check(claims, parts, later, number, tool):
    named, marked = flags_in(parts[number])
    known, others = help_of(tool), OTHERS.union(*map(help_of, TOOLS.values()))
    claims.equal(f"{tool}: flags of {number} that no --help has", sorted(named - marked - others), [])
    claims.equal(f"{tool}: flags of --help that {number} does not have",
                 sorted(known - named - flags_in(parts["3"])[0]), [])
    claims.equal(f"{tool}: flags with † that are not refused", sorted(f for f in marked if not refused(tool, f)), [])
    claims.equal(f"{tool}: flags with † that §8 does not name", sorted(marked - later), [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", default=PAGE)
    page = open(parser.parse_args().page).read()
    claims, parts, later = Claims(), read_parts(page), flags_in(read_section(page, 8))[0]
    for number, tool in TOOLS.items():
        check(claims, parts, later, number, tool)
    claims.finish()


if __name__ == "__main__":
    main()
