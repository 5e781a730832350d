"""Attributes: each name that code sets or reads on an op by a string is declared in a .td, as an argument of an op or
among the dialect's discardable attributes. An undeclared one decides something that the IR's definition does not show.
"""
import collections
import re

from house.sources import Fault

CALL = re.compile(r"\b(?:set|get|has|remove)(?:Discardable|Inherent)?Attr(?:OfType)?(?:<[^<>;]*>)?\(\s*")
CONSTANT = re.compile(r"\b(?:StringLiteral|StringRef|char \*const|char \*|string_view)\s*(\w+)\s*(?:\[\])?\s*[={]\s*$")
NAME = re.compile(r"([A-Za-z_]\w*)\s*[,)]")


def constants(tree, files):
    """Name of a constant -> the string that it is."""
    found = {}
    for file in files:
        cpp = tree.cpp(file)
        for literal in cpp.strings:
            match = CONSTANT.search(cpp.code[max(0, literal.at - 120):literal.at])
            if match:
                found[match[1]] = literal.text
    return found


def declared(tree):
    """Names of arguments in .td files, and of what dialects list as discardable."""
    return {name for file in tree.named(".td") for name in re.findall(r":\s*\$(\w+)", tree.read(file))}


def used(tree):
    """Name of an attribute -> places where a string names it."""
    files = tree.named(".h", ".cpp", under=("lib/", "include/", "tools/"))
    values = constants(tree, files)
    found = collections.defaultdict(list)
    for file in files:
        cpp = tree.cpp(file)
        literals = {literal.at: literal.text for literal in cpp.strings}
        for match in CALL.finditer(cpp.code):
            at = match.end()
            # The blanks of a string are matched by the call's own pattern: look where it began.
            start = cpp.code.index("(", match.start()) + 1
            inside = [text for offset, text in literals.items() if start <= offset <= at] if at > start else []
            if inside:
                name = inside[0]
            else:
                named = NAME.match(cpp.code, at)
                name = values.get(named[1]) if named else None
            if name:
                found[name].append(f"{file}:{cpp.line(match.start())}")
    return found


def undeclared(tree):
    known = declared(tree)
    return {name: places for name, places in used(tree).items()
            if name.removeprefix("par.") not in known and not name.startswith(("llvm.", "nvvm.", "sym_"))}


def check(tree):
    return [Fault("attribute", name, len(places), f'{places[0]}: no .td declares the attribute "{name}"')
            for name, places in sorted(undeclared(tree).items())]
