"""Sizes: a .cpp has at most 600 lines, a function 80, a class 250 (with its methods' bodies, in whatever file) and 20
methods, and a pass 600 with its private files (headers of its own folder, and what defines them, that no other pass of
the folder includes).
"""
import collections
import posixpath
import re

from house.scopes import items
from house.sources import CPP, Fault

MAX_FILE, MAX_FUNCTION, MAX_CLASS, MAX_METHODS, MAX_PASS = 600, 80, 250, 20, 600


def functions(tree):
    """(lines, file, name) of each function that is too long."""
    for file in tree.source():
        for item in items(tree.cpp(file)):
            if item.kind == "function" and item.lines > MAX_FUNCTION:
                yield item.lines, file, f"{item.owner}::{item.name}" if item.owner else item.name


def folder_of(file):
    """The folder whose files share classes: lib/X and include/par/X are one."""
    folder = posixpath.dirname(file)
    return re.sub(r"^include/par/", "lib/", re.sub(r"^runtime/include/par/", "runtime/src/", folder))


def classes(tree):
    """(folder, class) -> [lines with bodies of methods, methods]."""
    found, bodies = {}, collections.Counter()
    for file in tree.source():
        for item in items(tree.cpp(file)):
            where = folder_of(file)
            if item.kind == "class" and item.lines > 1:
                size = found.setdefault((where, item.name), [0, 0, set()])
                size[0] += item.lines
                size[1] = max(size[1], item.methods)
                size[2].add(file)
            elif item.kind == "function" and item.owner:
                bodies[where, item.owner, file] += item.lines
    for (where, name, file), lines in bodies.items():
        if (where, name) in found:
            size = found[where, name]
            # If several classes share a name, in files of their own, only the one that is declared here grows.
            if len(size[2]) == 1 or file in size[2]:
                size[0] += lines
    return {key: (lines, methods) for key, (lines, methods, _) in found.items()}


def own_headers(tree, file):
    """Headers of the same folder that a file includes."""
    folder = posixpath.dirname(file)
    names = [posixpath.join(folder, include)
             for include in re.findall(r'^#include "([^"/]+\.h)"', tree.read(file), re.M)]
    return [name for name in names if name in tree.files]


def passes(tree):
    """Pass file -> lines with its private files."""
    cpps = tree.named(".cpp", under=("lib/",))
    mains = [file for file in cpps if re.search(r"^#define GEN_PASS_DEF_", tree.read(file), re.M)]
    reached = collections.defaultdict(set)
    definers = collections.defaultdict(set)
    for file in cpps:
        if file not in mains:
            for header in own_headers(tree, file)[:1]:
                definers[header].add(file)
    for main in mains:
        todo, seen = own_headers(tree, main), set()
        while todo:
            header = todo.pop()
            if header in seen:
                continue
            seen.add(header)
            todo += own_headers(tree, header)
            for definer in definers[header] - seen:
                seen.add(definer)
                todo += own_headers(tree, definer)
        for file in seen:
            reached[file].add(main)
    lines = {main: tree.read(main).count("\n") for main in mains}
    for file, users in reached.items():
        if len(users) == 1:
            lines[next(iter(users))] += tree.read(file).count("\n")
    return lines


def check(tree):
    faults = []
    for file in tree.named(*(e for e in CPP if e != ".h"), under=("lib/", "runtime/src/", "runtime/tools/", "tools/")):
        lines = tree.read(file).count("\n")
        if lines > MAX_FILE:
            faults.append(Fault("file-lines", file, lines, f"{file}: {lines} lines, at most {MAX_FILE}"))
    for lines, file, name in functions(tree):
        key = f"{posixpath.basename(file)}:{name}"
        faults.append(Fault("function-lines", key, lines, f"{file}: {name} has {lines} lines, at most {MAX_FUNCTION}"))
    for (where, name), (lines, methods) in sorted(classes(tree).items()):
        key = f"{posixpath.basename(where)}:{name}"
        if lines > MAX_CLASS:
            faults.append(Fault("class-lines", key, lines,
                                f"{where}: class {name} has {lines} lines, at most {MAX_CLASS}"))
        if methods > MAX_METHODS:
            faults.append(Fault("class-methods", key, methods,
                                f"{where}: class {name} has {methods} methods, at most {MAX_METHODS}"))
    for file, lines in sorted(passes(tree).items()):
        if lines > MAX_PASS:
            faults.append(Fault("pass-lines", posixpath.basename(file), lines,
                                f"{file}: the pass has {lines} lines with its private files, at most {MAX_PASS}"))
    return faults
