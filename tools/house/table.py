"""The figures of a checkout, by which two of them are compared."""
import collections

from house import attributes, docs, errors, form, sizes, words
from house.rooms import Rooms, circles, prints, upward
from house.exceptions import Exceptions
from house.sources import CPP


def rows(tree):
    rooms = Rooms(tree)
    arrows = rooms.arrows()
    loops, raised = circles(arrows), upward(rooms, arrows)
    yield "rooms of C++", len({room for arrow in arrows for room in arrow}), ""
    yield "room circles", len(loops), "; ".join(" ".join(members) for members in loops)
    yield "arrows that rooms.txt does not allow", len(raised), ", ".join(f"{a}>{b}" for a, b in sorted(raised))
    printers = collections.Counter(room for room, _ in prints(tree).elements())
    yield "raw_ostream below Report", sum(printers.values()), ", ".join(f"{r} {n}" for r, n in sorted(printers.items()))
    for name, endings in (("C++", CPP), (".td", (".td",)), (".py", (".py",)),
                          (".sh, CMake", (".sh", ".cmake", "CMakeLists.txt")),
                          ("lit tests", form.TESTS), (".md", (".md",))):
        yield f"lines over {form.MAX_COLUMNS} columns, {name}", sum(len(l) for _, l in form.wide(tree, endings)), ""
    files, silent = form.heads(tree)
    yield "C++ files over 150 lines that open with what they do", len(files) - len(silent), f"of {len(files)}"
    counts = words.tally(tree)
    for kind, name in (("seen-words", "retired words that a user sees"), ("words", "retired words elsewhere"),
                       ("sentences", "sentences that begin with What, Where, Of, Those")):
        yield name, sum(n for (k, _), n in counts.items() if k == kind), ""
    names = attributes.undeclared(tree)
    yield "attributes that no .td declares", len(names), ", ".join(sorted(names))
    found = sizes.classes(tree)
    yield f"classes over {sizes.MAX_CLASS} lines", sum(l > sizes.MAX_CLASS for l,
                                                       _ in found.values()), largest(found, 0)
    yield f"classes over {sizes.MAX_METHODS} methods", sum(m > sizes.MAX_METHODS for _,
                                                           m in found.values()), largest(found, 1)
    yield f"functions over {sizes.MAX_FUNCTION} lines", len(list(sizes.functions(tree))), ""
    yield f"passes over {sizes.MAX_PASS} lines with private files", *passes(tree)
    yield "errors that no test quotes", len(errors.unquoted(tree)), f"of {len(list(errors.messages(tree)))}"
    wrong, number = docs.claims(tree)
    yield "false claims about flags and keys in docs", len(wrong), f"of {number}"
    lists = Exceptions(tree)
    yield "exceptions", len(lists.entries), ""


def largest(found, which):
    top = sorted(found.items(), key=lambda item: -item[1][which])[:3]
    return ", ".join(f"{name} {size[which]}" for (_, name), size in top)


def passes(tree):
    found = sorted(((lines, file) for file, lines in sizes.passes(tree).items() if lines > sizes.MAX_PASS),
                   reverse=True)
    return len(found), ", ".join(f"{file.split('/')[-1][:-4]} {lines}" for lines, file in found)


def print_table(tree):
    for name, value, more in rows(tree):
        print(f"{value:7}  {name}{': ' + more if more else ''}")
