"""Errors: each message is quoted by a test. For each statement that reports an error, and each entry of a message
table, the longest piece without placeholders must occur in the text of the tests (its first 40 characters will do).
"""
import re

from house.sources import CPP, Fault

CALL = re.compile(r"\b(?:emitError|emitOpError|emitWarning|error|fail|Failure|refuse|createStringError|fault|"
                  r"hardwareError|"
                  r"unsupported)\s*\(")
ROW = re.compile(r"^\s*M\(\w+,\s*", re.M)
PLACEHOLDER = re.compile(r"\{[^{}]*\}|%[-+.\d]*[a-z]+|\\n|®|†")
SHORTEST, QUOTED = 12, 40


def pieces(text):
    return [piece.strip(" '\":;,.") for piece in PLACEHOLDER.split(text.replace('\\"', '"').replace("\\\\", "\\"))]


def end_of(code, at):
    """The end of the statement, or of the argument list of a row of a table."""
    end = code.find(";", at)
    return len(code) if end < 0 else end


def row_end(code, at):
    depth = 1
    for match in re.compile(r"[()]").finditer(code, at):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return match.start()
    return at


def messages(tree):
    """(file, line, the longest constant piece) of each error."""
    for file in tree.named(*CPP,
                           under=("lib/", "include/", "runtime/src/", "runtime/include/", "runtime/tools/", "tools/")):
        cpp = tree.cpp(file)
        # Rows of message tables stand in macros, which `code` leaves blank.
        spans = [(m.start(), end_of(cpp.code, m.end())) for m in CALL.finditer(cpp.code)]
        spans += [(m.start(), row_end(cpp.text, m.end())) for m in ROW.finditer(cpp.text)]
        seen = set()
        for begin, end in spans:
            literals = [one for one in cpp.strings if begin <= one.at < end and one.at not in seen]
            seen.update(one.at for one in literals)
            texts, last = [], None
            for one in literals:
                between = cpp.text[last:one.at].replace("\\\n", "").strip() if last is not None else "x"
                if between:
                    texts.append(one.text)
                else:
                    texts[-1] += one.text
                last = one.at + len(one.text) + 2
            longest = max((piece for text in texts for piece in pieces(text)), key=len, default="")
            if len(longest) >= SHORTEST:
                yield file, cpp.line(begin), longest


def unquoted(tree):
    tests = tree.tests()
    return [(file, line, piece) for file, line, piece in messages(tree) if piece[:QUOTED] not in tests]


def check(tree):
    found = {}
    for file, line, piece in unquoted(tree):
        key = re.sub(r"\W+", "-", piece[:QUOTED]).strip("-")
        found.setdefault(key, Fault("error", key, 1, f'{file}:{line}: no test quotes "{piece}"'))
    return list(found.values())
