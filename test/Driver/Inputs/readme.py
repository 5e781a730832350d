#!/usr/bin/env python3
"""Compares README.md with the output of the tools: the summary of the first example, the plan and the IR of the second.

readme.py README.md EXAMPLES SUMMARY IR: the printed summary of 3d.yaml and the printed IR of pair.yaml after Partition.
Times depend on the machine and are left out.
"""
import re
import sys


def stable(line):
    """The line without predicted and measured times, which depend on the machine."""
    return re.sub(r"^(predicted step|wrote +\S+ in).*", r"\1", line.strip())


def main(readme, examples, summary, ir):
    text = open(readme).read()
    missing = []
    block = re.search(r"\$ par-compile [^\n]*-o demo\.par\n(.*?)\n\n", text, re.S).group(1)
    printed = [stable(line) for line in open(summary) if line.strip()]
    quoted = [stable(line) for line in block.splitlines()]
    if quoted != printed:
        missing.append(
            "the summary of 3d.yaml is\n" + "\n".join(printed) + "\nand README.md says\n" + "\n".join(quoted)
        )
    plan = open(examples + "/pair.yaml").read()
    if "```yaml\n" + plan + "```" not in text:
        missing.append("the text of examples/pair.yaml")
    lines = [line.strip() for line in open(ir)]
    quotes = re.findall(r"^    (%\d+ = par\..*)$", text, re.M)
    missing += [f"{quote}: not in the IR of pair.yaml" for quote in quotes if quote not in lines]
    if len(quotes) < 2:
        missing.append("two quoted lines of IR")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    root = readme.rsplit("/", 1)[0]
    for link in links:
        try:
            open(f"{root}/{link}").close()
        except OSError:
            missing.append(f"the linked file {link}")
    if missing:
        sys.exit("README.md is wrong about: " + "\n".join(missing))


main(*sys.argv[1:])
