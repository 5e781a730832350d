#!/usr/bin/env python3
"""Holds the passes that the pages of docs/phases name against those of par-opt, a line a claim.

    page_phases.py [--pages docs/phases]      (par-opt on the PATH)

Each pass of `par-opt --help` stands on a page, and each -par-... of a page is one of them. Exit status 0: all hold.
"""
import argparse
import pathlib
import re
import subprocess

from runs import HERE, Claims

OTHERS = {"par-problem"}  # a flag of par-opt that is no pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=pathlib.Path, default=HERE.parents[1] / "docs/phases")
    pages = parser.parse_args().pages
    help_text = subprocess.run(["par-opt", "--help"], capture_output=True, text=True, check=True).stdout
    passes = set(re.findall(r"^ +--(par-[a-z-]+)", help_text, re.M))
    named = {name for page in pages.glob("*.md") for name in re.findall(r"`-{1,2}(par-[a-z-]+)", page.read_text())}
    claims = Claims()
    claims.hold("passes of par-opt", len(passes), 50, least=True)
    claims.equal("passes that no page names", sorted(passes - named - OTHERS), [])
    claims.equal("passes of the pages that par-opt lacks", sorted(named - passes - OTHERS), [])
    claims.finish()


if __name__ == "__main__":
    main()
