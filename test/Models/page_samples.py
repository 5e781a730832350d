#!/usr/bin/env python3
"""Compares a page's plans and errors with the output of par-compile, a line a claim.

    page_samples.py [--page docs/plan.md] [--update]      (par-compile on the PATH)

A block ```yaml is a plan that the reader takes (--print-plan), each document of a stream by itself. ```yaml MODEL is
one that compiles with MODEL (--check), a file of examples/ or of test/Models/page. A following block ```text is
par-compile's stderr for the plan, in which the page may break lines. Documents that docs/roadmap.md lists, those in
REFUSED of page_plans.py, are left to that script. --update writes par-compile's present output into the page. Exit
status 0: all hold.
"""

import argparse
import gzip
import pathlib
import re
import subprocess
import tempfile
import textwrap

from page_plans import PAGE, REFUSED
from runs import HERE, Claims

BLOCKS = re.compile(r"^```yaml ?(\S*)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
FLAGS = {True: ["--check", "-q"], False: ["--print-plan"]}


def model_of(name, folder):
    for file in (HERE.parents[1] / f"examples/{name}.onnx", HERE / f"page/{name}.onnx.gz"):
        if file.exists():
            path = folder / f"{name}.onnx"
            path.write_bytes(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes())
            return [path.name]
    raise SystemExit(f"no model {name!r} in examples/ or test/Models/page")


def documents(text):
    """(title, plan) of each document of a stream; the title is the comment after ---, if there is one."""
    parts = re.split(r"^---(?: # (.*))?\n", text, flags=re.M)
    found = [("", parts[0])] if parts[0].strip() else []
    return found + list(zip((title or "" for title in parts[1::2]), parts[2::2]))


def compile_plan(plan, model, folder):
    """The exit status and what par-compile says of a plan."""
    (folder / "plan.yaml").write_text(plan)
    command = ["par-compile", *(model_of(model, folder) if model else []), "plan.yaml", *FLAGS[bool(model)]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stderr


def words(text):
    """A text without its line breaks: blanks before a caret are the plan's line's, and are compared."""
    lines = [line if set(line.strip()) == {"^"} else line.split() for line in text.splitlines()]
    return [word for line in lines for word in ([line] if isinstance(line, str) else line)]


def broken(text):
    """The lines of a text, none of them longer than 118 columns."""
    lines = []
    for line in text.splitlines():
        indent = re.match(" *", line)[0] + "  "
        lines += textwrap.wrap(line, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
                               drop_whitespace=True) if len(line) > 118 else [line]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    claims, page = Claims(), options.page.read_text()
    pieces, end, read = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="par-samples-") as work:
        for block in BLOCKS.finditer(page):
            model, text, said = block.groups()
            line = page.count("\n", 0, block.start()) + 1
            for title, plan in documents(text):
                if any(map(title.startswith, REFUSED)):
                    continue
                status, found = compile_plan(plan, model, pathlib.Path(work))
                read += 1
                name = f"{options.page.name}:{line}: {title[:40]}".rstrip(": ")
                if said is None:
                    claims.equal(f"{name}: exit status", status, 0)
                    claims.equal(f"{name}: errors", re.findall("^.*error: .*", found, re.M), [])
                else:
                    if not claims.equal(f"{name}: as the page says", words(found) == words(said), True):
                        print(found, end="")
            if options.update and said is not None:
                pieces += [page[end:block.start(3)], broken(found)]
                end = block.end(3)
    if options.update:
        options.page.write_text("".join(pieces) + page[end:])
    claims.hold("plans read", read, 1, least=True)
    claims.finish()


if __name__ == "__main__":
    main()
