"""Batches: files of one target share no name that each has for itself: a static function or constant, or what stands in
an anonymous namespace. tools/build.sh compiles a target's files in batches, in which such names meet; a build that
compiles file by file does not see it. Functions may have the same name with other parameters, as overloads.
"""
import collections
import re

from house.scopes import ACCESS, CLASS, MARK, kind_of, name_of
from house.sources import Fault

# Folders of files that are each a program or a library.
PROGRAMS = ("Fuzz", "Stub", "Device", "Job", "Mpi", "Inputs", "Toys")
NO_FUNCTION = re.compile(r"\b(?:TEST(?:_[FP])?|INSTANTIATE_\w+|void|struct|PAR_\w+)$")
TYPES = ("struct", "class", "enum")
SPACE = re.compile(r"\bnamespace\s*([\w:]*)\s*$")
CONSTANT = re.compile(r"^\s*(?:(?:static|constexpr|const|inline|thread_local)\s+)+[\w:<>,*&\s]*?[\s*&](\w+)\s*"
                      r"(?:\[[^]]*\]\s*)*(?:=|$)")


def target_of(file):
    """The folder whose files are compiled together."""
    parts = file.split("/")[:-1]
    if any(part in parts[1:] for part in PROGRAMS):
        return file
    deep = parts[1] in ("Phases", "Runtime", "src")
    return "/".join(parts[:3 if deep else 2])


def parameters(head):
    """Types of a function's parameters, without names and default values, near enough to tell overloads apart."""
    text = head[head.index("(", head.index(name_of(head)[1])) + 1:]
    text = re.sub(r"\s*=[^,()]*", "", re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", text)))
    return ",".join(re.sub(r"\s*\b\w+\s*$", "", part).strip() for part in text.split(")")[0].split(","))


def own_names(cpp):
    """(kind, namespace, name, offset) of what only this file sees."""
    stack, start = [], 0  # of (kind, name of a namespace, where the statement around an initializer begins)
    for mark in MARK.finditer(cpp.code):
        at, head = mark.start(), ACCESS.sub("", cpp.code[start:mark.start()])
        outer = stack[-1][0] if stack else "namespace"
        spaces = [name for kind, name, _ in stack if kind == "namespace"]
        hidden, place, begin = "" in spaces, "::".join(filter(None, spaces)), at - len(head.lstrip())
        kind, type_ = kind_of(head, outer) if mark[0] == "{" else "", CLASS.search(head)
        own = hidden or re.search(r"\bstatic\b", head.split("=")[0])
        if outer == "namespace" and kind == "class" and hidden and type_:
            yield "class", place, type_[1], begin
        elif outer == "namespace" and kind == "function" and "template" not in head and own:
            owner, name = name_of(head)
            if name and not owner and not NO_FUNCTION.match(name):
                yield "function", place, f"{name}({parameters(head)})", begin
        elif outer == "namespace" and mark[0] != "}" and kind != "namespace":
            constant = CONSTANT.match(head.rstrip())
            if constant and own and constant[1] not in TYPES and "(" not in head.split("=")[0]:
                yield "constant", place, constant[1], begin
        if mark[0] == "{":
            space = SPACE.search(head)
            stack.append((kind, space[1] if space else "", start))
            start = start if kind == "initializer" else at + 1
        elif mark[0] == "}" and stack:
            kind, _, before = stack.pop()
            start = before if kind == "initializer" else at + 1
        else:
            start = at + 1


def check(tree):
    places = collections.defaultdict(dict)
    for file in tree.named(".cpp", under=("lib/", "runtime/src/", "test/")):
        for kind, place, name, at in own_names(tree.cpp(file)):
            key = (target_of(file), place, name.split("(")[0] if kind != "function" else name)
            places[key].setdefault(file, f"{file}:{tree.cpp(file).line(at)}")
    return [Fault("batch", f"{target}/{name}", len(where),
                  f"{first}: {name} is also a name of {other}; files of {target} are compiled together")
            for (target, _, name), where in sorted(places.items()) if len(where) > 1
            for first, other in [list(where.values())[:2]]]
