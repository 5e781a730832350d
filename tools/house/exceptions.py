"""The faults that stand today: exceptions.txt, a line each with its size and a reason, and budget.txt, a line a room.

    CHECK KEY VALUE REASON...        a fault of this check may be as large as VALUE
    ROOM WORDS SENTENCES             retired words, and sentences that begin with a retired word, in a room's comments

Neither list may grow: a fault that is larger fails, and a smaller or vanished one fails with the number to write.
"""
import dataclasses

from house.sources import LISTS

BUDGETED = ("words", "sentences", "seen-words")


@dataclasses.dataclass
class Entry:
    value: int
    reason: str


class Exceptions:
    def __init__(self, tree):
        self.tree, self.entries, self.budget = tree, {}, {}
        for line in tree.list_lines("exceptions.txt"):
            check, key, value, *reason = line.split(None, 3)
            self.entries[check, key] = Entry(int(value), " ".join(reason))
        for line in tree.list_lines("budget.txt"):
            room, *values = line.split()
            for check, value in zip(BUDGETED, values):
                self.budget[check, room] = int(value)

    def complain(self, faults, names):
        """The complaints, a line each."""
        out, met = [], set()
        for fault in faults:
            key = fault.check, fault.key
            met.add(key)
            if fault.check in BUDGETED:
                allowed = self.budget.get(key, 0)
                if fault.value > allowed:
                    out.append(f"{fault.message}; the budget of {fault.key} in tools/house/budget.txt is {allowed}")
                elif fault.value < allowed:
                    out.append(f"{fault.key}: lower the budget of {fault.check} to {fault.value} (--update does)")
            elif key not in self.entries:
                out.append(f"{fault.message} [{fault.check} {fault.key}]")
            elif fault.value > self.entries[key].value:
                out.append(
                    f"{fault.message}; its exception allows {self.entries[key].value} [{fault.check} {fault.key}]")
            elif fault.value < self.entries[key].value:
                out.append(f"{fault.check} {fault.key}: lower its exception to {fault.value} (--update does)")
        for key, entry in self.entries.items():
            if key not in met and self.is_of(key[0], names):
                out.append(f"{key[0]} {key[1]}: the exception is not needed any more (--update takes it out)")
            if not entry.reason:
                out.append(f"{key[0]} {key[1]}: the exception has no reason")
        for key, value in self.budget.items():
            if value and key not in met and self.is_of(key[0], names):
                out.append(f"{key[1]}: lower the budget of {key[0]} to 0 (--update does)")
        return out

    @staticmethod
    def is_of(check, names):
        """Whether a fault's kind belongs to one of the checks that ran."""
        kinds = {"rooms": ("arrow", "circle", "homeless"), "attributes": ("attribute",), "errors": ("error",),
                 "sizes": ("class-lines", "class-methods", "file-lines", "function-lines", "pass-lines"),
                 "form": ("columns", "subject", "head", "guard", "constant"),
                 "words": BUDGETED, "docs": ("flag", "key"), "costs": ("rate",), "batches": ("batch",)}
        return any(check in kinds[name] for name in names)

    def lower(self, faults, names):
        """Rewrites both lists with the values of today where these are smaller."""
        sizes = {(fault.check, fault.key): fault.value for fault in faults}
        for key in list(self.entries):
            if self.is_of(key[0], names):
                value = min(self.entries[key].value, sizes.get(key, 0))
                self.entries[key].value = value
                if not value:
                    del self.entries[key]
        for key in self.budget:
            if self.is_of(key[0], names):
                self.budget[key] = min(self.budget[key], sizes.get(key, 0))
        self.write()

    def write(self):
        rows = [f"{check} {key} {entry.value} {entry.reason}" for (check, key), entry in sorted(self.entries.items())]
        self.write_list("exceptions.txt", rows)
        rooms = sorted({room for _, room in self.budget})
        counts = [[self.budget.get((check, room), 0) for check in BUDGETED] for room in rooms]
        self.write_list("budget.txt",
                        [" ".join([room, *map(str, row)]) for room, row in zip(rooms, counts) if any(row)])

    def write_list(self, name, rows):
        path = self.tree.root / LISTS / name
        head = [line for line in path.read_text().splitlines() if line.startswith("#")] if path.exists() else []
        path.write_text("\n".join(head + rows) + "\n")
