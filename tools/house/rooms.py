"""Rooms: which folder may include which. rooms.txt lists them from the ground up, a line each:

    ROOM = FOLDER... : ROOM...       the folders of a room, and the rooms that its files may include

A file's room is that of the longest folder that holds it. An arrow that is not listed is a fault, so is a listed one
that points at a room further down the list (upward: what stands lower must not know what stands above it), and so is a
folder of C++ in no room. A `*` lets a room include all that stand before it. Rooms below Report return text and
print nothing.
"""
import collections
import posixpath
import re

from house.sources import CPP, Fault

INCLUDE = re.compile(r'^\s*(?:#\s*)?include "([^"]+)"', re.M)
ROOTS = ("include/", "runtime/include/", "runtime/src/", "lib/", "")
STREAM = re.compile(r"^(?!.*\bvoid output\().*\braw_ostream\b(?!\.h)", re.M)
PRINTERS = ("Report", "Driver", "C", "tools")  # rooms that may print
COVERED = ("lib/", "include/", "runtime/src/", "runtime/include/", "tools/")


class Rooms:
    def __init__(self, tree):
        self.tree, self.folders, self.allowed, self.order = tree, {}, {}, []
        for line in tree.list_lines("rooms.txt", shared=True):
            name, _, rest = line.partition("=")
            folders, _, allowed = rest.partition(":")
            name = name.strip()
            allowed = set(allowed.split())
            self.allowed[name] = set(self.order) if "*" in allowed else allowed
            self.order.append(name)
            for folder in folders.split():
                self.folders[folder.rstrip("/") + "/"] = name

    def room_of(self, file):
        """The listed room of a file; else its folder, which lib/ and include/par/ share."""
        best = max((folder for folder in self.folders if file.startswith(folder)), key=len, default=None)
        if best:
            return self.folders[best]
        parts = re.sub(r"^(runtime/)?include/par/", lambda m: "runtime/src/" if m[1] else "lib/", file).split("/")
        depth = 3 if parts[0] == "runtime" else 2
        return "/".join(parts[:min(depth, len(parts) - 1)]) or "."

    def target_of(self, file, include):
        """The file that an include means; of a generated one a file beside it. None for those of libraries."""
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), include))
        for name in [beside] + [root + include for root in ROOTS]:
            if name in self.known:
                return name
        folder = "include/" + posixpath.dirname(include)
        return f"{folder}/generated" if include.startswith("par/") and folder in self.open else None

    def arrows(self):
        """(room, included room) -> the files that include."""
        self.known = set(self.tree.files)
        self.open = {posixpath.dirname(file) for file in self.known} - {"include/par"}
        found = collections.defaultdict(set)
        for file in self.tree.named(*CPP, ".td", under=COVERED):
            for include in INCLUDE.findall(self.tree.read(file)):
                target = self.target_of(file, include)
                if target:
                    rooms = self.room_of(file), self.room_of(target)
                    if rooms[0] != rooms[1]:
                        found[rooms].add(file)
        return found


def circles(arrows):
    """Sets of rooms that reach each other (Tarjan 1972), and each of which is more than one room."""
    index, low, stack, out = {}, {}, [], []
    after = collections.defaultdict(list)
    for one, other in sorted(arrows):
        after[one].append(other)

    def visit(room):
        index[room] = low[room] = len(index)
        stack.append(room)
        for other in after[room]:
            if other not in index:
                visit(other)
                low[room] = min(low[room], low[other])
            elif other in stack:
                low[room] = min(low[room], index[other])
        if low[room] == index[room]:
            members = []
            while not members or members[-1] != room:
                members.append(stack.pop())
            if len(members) > 1:
                out.append(sorted(members))

    for room in sorted(after):
        if room not in index:
            visit(room)
    return out


def upward(rooms, arrows):
    """Arrows that rooms.txt does not list, or that point at a room which stands later in it."""
    place = {room: number for number, room in enumerate(rooms.order)}
    return {(one, other) for one, other in arrows
            if one in place and (other not in rooms.allowed[one] or place.get(other, 0) > place[one])}


def prints(tree):
    """(room, file) -> how often it writes to a stream that it is given, below the rooms that print. LLVM's YAML asks
    for a stream in `output`."""
    rooms = Rooms(tree)
    counts = {(rooms.room_of(file), file): len(STREAM.findall(tree.cpp(file).code))
              for file in tree.named(*CPP, under=("lib/", "include/par/"))}
    return collections.Counter({key: count for key, count in counts.items() if count and key[0] not in PRINTERS})


def check(tree):
    rooms = Rooms(tree)
    arrows = rooms.arrows()
    faults = []
    for one, other in sorted(upward(rooms, arrows)):
        files = sorted(arrows[one, other])
        faults.append(Fault("arrow", f"{one}>{other}", len(files),
                            f"{files[0]}: {one} may not include {other} ({len(files)} files do)"))
    for members in circles(arrows):
        faults.append(Fault("circle", "+".join(members), 1, "rooms include each other: " + " ".join(members)))
    for (_, file), count in sorted(prints(tree).items()):
        faults.append(Fault("prints", file, count, f"{file}: only {', '.join(PRINTERS)} print; return the text"))
    homeless = {rooms.room_of(f) for f in tree.named(*CPP, under=COVERED)} - set(rooms.order)
    faults += [Fault("homeless", room, 1, f"{room}: tools/house/rooms.txt has no such room")
               for room in sorted(homeless)]
    return faults
