#!/usr/bin/env python3
"""Holds the passes that the pages of docs/phases name against those that the tables declare, a line a claim.

    page_phases.py [--pages docs/phases]

Each pass of a Passes.td stands on a page, and each -par-... of a page is one of them, or a pipeline. Exit status 0: all
hold.
"""

import argparse
import pathlib
import re

from runs import HERE, Claims

ROOT = HERE.parents[1]
OTHERS = {"par-problem"}  # a flag of par-opt that is no pass


def declared(folder, suffix, form):
    """The names that the files of a folder declare."""
    return {name for file in (ROOT / folder).rglob(f"*{suffix}") for name in re.findall(form, file.read_text())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=pathlib.Path, default=HERE.parents[1] / "docs/phases")
    pages = parser.parse_args().pages
    passes = declared("include", ".td", r'Pass<"(par-[a-z0-9-]+)"')
    pipelines = declared("lib", ".cpp", r'PassPipelineRegistration<\w+>\(\s*"(par-[a-z0-9-]+)"')
    named = {name for page in pages.glob("*.md") for name in re.findall(r"`-{1,2}(par-[a-z0-9-]+)", page.read_text())}
    claims = Claims()
    claims.hold("passes", len(passes), 50, least=True)
    claims.equal("passes that no page names", sorted(passes - named), [])
    claims.equal("passes of the pages that no table has", sorted(named - passes - pipelines - OTHERS), [])
    claims.finish()


if __name__ == "__main__":
    main()
