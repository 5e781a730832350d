"""Form that clang-format does not hold: lines of at most 120 columns, also in Python, shell, CMake and .td (and in lit
tests, by their own exceptions a room); one header guard; no constant named kMax.. or most..; a C++ file over 150 lines
opens with a sentence that says what it does; commit subjects (subjects.py).
"""
import re

from house.sources import CPP, Fault
from house.subjects import subjects

MAX_COLUMNS, HEAD_FROM = 120, 150
PLAIN = CPP + (".td", ".py", ".sh", ".cmake", "CMakeLists.txt", ".cfg", ".py.in")
TESTS = (".mlir", ".test", ".problem")
CONSTANT = re.compile(r"\b(k[A-Z][a-z]\w*|most[A-Z]\w*|(?:least|fewest)[A-Z]\w*)\b")


def wide(tree, endings):
    """(file, lines that are too wide) of files with these endings; what a script has written is not looked at."""
    for file in tree.named(*endings):
        if file.startswith("test/Onnx/Inputs/"):
            continue
        lines = [number for number, line in enumerate(tree.read(file).splitlines(), 1) if len(line) > MAX_COLUMNS]
        if lines:
            yield file, lines


def is_open(text):
    """Whether a file begins with a comment that is no banner."""
    first = text.split("\n", 1)[0]
    return first.startswith(("// ", "/// ", "/* ")) and "===" not in first


def heads(tree):
    """Long C++ files, and those of them that do not say what they do."""
    files = [file for file in tree.named(*CPP) if tree.read(file).count("\n") > HEAD_FROM]
    return files, [file for file in files if not is_open(tree.read(file))]


def check(tree):
    faults = [Fault("columns", file, len(lines), f"{file}:{lines[0]}: {len(lines)} lines over {MAX_COLUMNS} columns")
              for file, lines in wide(tree, PLAIN)]
    rooms = {}
    for file, lines in wide(tree, TESTS):
        room = "/".join(file.split("/")[:2])
        rooms.setdefault(room, []).append((file, lines))
    for room, found in sorted(rooms.items()):
        count = sum(len(lines) for _, lines in found)
        faults.append(Fault("columns", room, count, f"{found[0][0]}:{found[0][1][0]}: {count} lines of lit tests of "
                            f"{room} over {MAX_COLUMNS} columns"))
    faults += subjects(tree)
    for file in heads(tree)[1]:
        faults.append(Fault("head", file, 1, f"{file}: over {HEAD_FROM} lines, and does not open with what it does"))
    for file in tree.named(".h"):
        if not re.search(r"^#pragma once$", tree.read(file), re.M) and not file.startswith("include/par/C/"):
            faults.append(Fault("guard", file, 1, f"{file}: a header begins with #pragma once"))
    for file in tree.named(*CPP):
        for name in sorted(set(CONSTANT.findall(tree.cpp(file).code))):
            faults.append(Fault("constant", name, 1, f"{file}: {name}: constants are named max.., min.., without k"))
    return faults
