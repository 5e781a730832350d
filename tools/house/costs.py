"""Costs: only CostTable (lib/Costs) predicts times from the rates of a hardware file. Elsewhere no code reads a rate:
whoever divides by one has a cost model of its own.
"""
import re

from house.sources import Fault

RATES = ("f32", "f64", "bf16", "f16", "peak", "memory", "link", "host", "latency", "launch", "hostLink",
         "hostLatency", "share", "hostShare", "waves", "attention", "attentionBackward", "convolution", "kernelFlops",
         "kernelOverhead", "measured")
# A name or a call that ends in one of these words is a hardware file.
USE = re.compile(r"\b\w*(?:[hH]ardware|[mM]achine)(?:\(\))?\s*(?:\.|->)\s*(" + "|".join(RATES) + r")\b")
MAY = ("lib/Costs/", "include/par/Costs/", "lib/Base/", "include/par/Base/")


def check(tree):
    faults = []
    for file in tree.named(".h", ".cpp", under=("lib/", "include/", "tools/")):
        cpp = tree.cpp(file)
        for match in () if file.startswith(MAY) else USE.finditer(cpp.code):
            place = f"{file}:{cpp.line(match.start())}"
            faults.append(Fault("rate", f"{file} {match[1]}", 1,
                                f"{place}: reads {match[1]} of a hardware file; ask CostTable"))
    return faults
