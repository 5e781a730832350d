#!/usr/bin/env python3
"""Checks the rules of the house that no compiler checks; test/House runs it.

    tools/house.py [--root DIR] [--only CHECK]...     the faults, a line each; exit status 1 if there are any
    tools/house.py --table [--root DIR]               the figures of a checkout, a line each
    tools/house.py --update                           lowers budgets and exceptions to the faults that are left

Each check is a file of tools/house/ and says at its top which rule it holds. Faults that stand today are listed with a
reason in tools/house/exceptions.txt, those of words as a number for each room in tools/house/budget.txt. Both lists can
only shrink: a new fault fails, and so does an exception whose fault is gone.
"""
import argparse
import pathlib
import sys

from house import attributes, batches, costs, docs, errors, form, rooms, sizes, words
from house.exceptions import Exceptions
from house.sources import Tree
from house.table import print_table

CHECKS = {
    "rooms": rooms.check, "attributes": attributes.check, "sizes": sizes.check, "form": form.check,
    "words": words.check, "errors": errors.check, "docs": docs.check, "costs": costs.check,
    "batches": batches.check,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--only", action="append", choices=sorted(CHECKS), help="only this check")
    parser.add_argument("--table", action="store_true", help="prints the figures")
    parser.add_argument("--update", action="store_true", help="lowers what may be lower")
    options = parser.parse_args()
    tree = Tree(options.root)
    if not tree.files:
        sys.exit(f"house.py: {options.root} has no files")
    if options.table:
        print_table(tree)
        return
    names = options.only or list(CHECKS)
    faults = [fault for name in names for fault in CHECKS[name](tree)]
    exceptions = Exceptions(tree)
    if options.update:
        exceptions.lower(faults, names)
    complaints = exceptions.complain(faults, names)
    for line in complaints:
        print(line)
    print(f"house: {', '.join(names)}: {len(complaints)} faults, {len(exceptions.entries)} exceptions")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
