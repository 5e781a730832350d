"""Holds a page of operators against what `par-node-tests --operators` says now.

    operators.py docs/onnx.md

Fails where the page promises an operator that is not read, or lacks one; prints those that it does not know to be read.
"""
import re
import subprocess
import sys


def rows(text):
    return dict(re.findall(r"^\| (\w+) \| \d+ \| ([^|]*) \|", text, flags=re.M))


page = rows(open(sys.argv[1]).read())
now = rows(subprocess.run(["par-node-tests", "--operators"], capture_output=True, text=True, check=True).stdout)
late = [name for name in now if now[name] == "yes" and page.get(name) != "yes"]
if late:
    print("read by now:", " ".join(late), "(par-node-tests --operators > docs/onnx.md)")
wrong = [name for name in now if name not in page or (page[name] == "yes" and now[name] != "yes")]
print(f"{len(now)} operators, {len(wrong)} promised too much or missing", *wrong)
sys.exit(1 if wrong or not now else 0)
