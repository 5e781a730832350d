#!/usr/bin/env python3
"""Compares a page's transcripts with what the commands print now, a line a claim.

    page_transcripts.py [--page docs/plan.md] [--update]      (par-compile on the PATH)

A transcript is a block ```console: each line that begins with "$ " is a command of bash, the lines after it what it
prints, stderr too, in which the page may break lines. The commands of a page run one after the other in one folder, in
which examples/ is this repository's. --update writes what they print now into the page. Exit status 0: all hold.
"""

import argparse
import pathlib
import re
import subprocess
import tempfile

from page_plans import PAGE
from page_samples import broken, words
from runs import HERE, Claims

BLOCKS = re.compile(r"^```console\n(.*?)^```\n", re.M | re.S)


def commands(text):
    """(command, what follows it) of a transcript."""
    pieces = re.split(r"^\$ (.*)\n", text, flags=re.M)
    return list(zip(pieces[1::2], pieces[2::2]))


def run(command, folder):
    done = subprocess.run(["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=600)
    return done.stdout


def check(claims, name, said, found):
    if not claims.equal(name, words(found) == words(said), True):
        print(found, end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    claims, page = Claims(), options.page.read_text()
    pieces, end, count = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="par-transcripts-") as folder:
        (pathlib.Path(folder) / "examples").symlink_to(HERE.parents[1] / "examples")
        for block in BLOCKS.finditer(page):
            line = page.count("\n", 0, block.start()) + 1
            printed = []
            for command, said in commands(block[1]):
                printed.append((command, run(command, folder)))
                count += 1
                check(claims, f"{options.page.name}:{line}: {command[-60:]}", said, printed[-1][1])
            pieces += [page[end:block.start(1)], *(f"$ {command}\n{broken(found) if found else ''}"
                                                   for command, found in printed)]
            end = block.end(1)
    if options.update:
        options.page.write_text("".join(pieces) + page[end:])
    claims.hold("commands", count, 1, least=True)
    claims.finish()


if __name__ == "__main__":
    main()
