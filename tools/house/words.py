"""Words: retired ones (words.txt) and sentences that begin with "What", "Where", "Of" or "Those" are counted a room,
and budget.txt says how many a room may have. A user sees messages, docs and help: there the words have a count of their
own.
"""
import collections
import re

from house.rooms import Rooms
from house.sources import CPP, Fault

SENTENCE = re.compile(r"(?:^|[.!?:]\s+)(?:What|Where|Of|Those)\b(?![^.!?]*\?)")
DOCS = ("docs/", "README.md", "bench/README.md")
SCANNED = ("lib/", "include/", "runtime/", "tools/", "python/", "docs/", "bench/", "test/", "README.md")
SEEN = ("lib/", "include/", "runtime/src/", "runtime/include/", "runtime/tools/", "tools/")


def patterns(tree):
    """Words of code, and of text."""
    any_word, text = [], []
    for line in tree.list_lines("words.txt", shared=True):
        kind, pattern, _ = re.split(r"\s{2,}", line, maxsplit=2)
        (any_word if kind == "any" else text).append(pattern)
    join = lambda parts: re.compile("|".join(f"(?:{part})" for part in parts)) if parts else re.compile(r"(?!)")
    return join(any_word), join(text)


def count(pattern, text):
    return sum(1 for _ in pattern.finditer(text))


def prose_of(tree, file):
    """Texts of a file in which words are meant to be read: comments of code, or a page outside of its code blocks."""
    if file.endswith(CPP):
        return tree.cpp(file).comment_blocks()
    text = tree.read(file)
    if file.endswith(".md"):
        return re.split(r"\n\s*\n|\n(?=[-#|])", re.sub(r"```.*?```", "", text, flags=re.S))
    if file.endswith(".py"):
        blocks = re.findall(r'"""(.*?)"""', text, re.S)
        return blocks + [re.sub(r"^\s*# ?", "", block, flags=re.M)
                         for block in re.findall(r"(?:^\s*#.*\n)+", text, re.M)]
    if file.endswith(".td"):
        blocks = re.findall(r"\[\{(.*?)\}\]", text, re.S)
        return blocks + [re.sub(r"^\s*/{2,} ?", "", block, flags=re.M)
                         for block in re.findall(r"(?:^\s*//.*\n)+", text, re.M)]
    return [re.sub(r"^\s*(?:#|//) ?", "", block, flags=re.M)
            for block in re.findall(r"(?:^\s*(?:#|//).*\n)+", text, re.M)]


def tally(tree):
    """(kind, room) -> how many; the kinds are words, sentences and seen-words."""
    in_code, in_text = patterns(tree)
    rooms, out = Rooms(tree), collections.Counter()
    for file in tree.named(*CPP, ".td", ".py", ".md", ".mlir", ".test", ".sh", ".cmake", "CMakeLists.txt",
                           under=SCANNED):
        room = rooms.room_of(file)
        prose = prose_of(tree, file)
        page = file.startswith(DOCS)
        out["sentences", room] += sum(count(SENTENCE, text.strip()) for text in prose)
        words = sum(count(in_text, text) + count(in_code, text) for text in prose)
        out["seen-words" if page else "words", room] += words
        if file.endswith(CPP):
            cpp = tree.cpp(file)
            out["words", room] += count(in_code, cpp.code)
            if file.startswith(SEEN):
                messages = (literal.text for literal in cpp.strings if " " in literal.text)
                out["seen-words", room] += sum(count(in_text, text) for text in messages)
    return out


def check(tree):
    say = {"words": "retired words", "sentences": 'sentences that begin with "What", "Where", "Of" or "Those"',
           "seen-words": "retired words that a user sees"}
    return [Fault(kind, room, number, f"{room}: {number} {say[kind]}")
            for (kind, room), number in sorted(tally(tree).items()) if number]
