"""Classes and functions of a C++ file, by its braces: enough for code that clang-format has laid out.

A brace opens a namespace, a class, a function (in a namespace or class, after a parameter list) or something else. A
statement of a class that has a parameter list and is no alias or deleted member declares a method.
"""
import dataclasses
import re

MARK = re.compile(r"[{};]")
CLASS = re.compile(r"\b(?:class|struct|union)\s+(?:PAR_\w+\s+)?((?:\w+::)*\w+)(?:\s+final)?\s*(?::[^:].*)?$", re.S)
FUNCTION_END = re.compile(r"(?:\)|\bconst|\boverride|\bfinal|\bnoexcept|\btry|->[^(){}]*)\s*$")
NO_METHOD = re.compile(r"^\s*(?:using|typedef|friend|static_assert|PAR_\w+|enum)\b|=\s*(?:delete|default)\s*$")
ACCESS = re.compile(r"^\s*(?:public|private|protected)\s*:")
NAME = re.compile(r"((?:[A-Za-z_]\w*(?:<[^<>()]*>)?::)*)(~?[A-Za-z_]\w*|operator\s*\S{1,3}|operator\s+[\w:*& ]+)\s*\(")


@dataclasses.dataclass
class Item:
    """A class or a function: its name, the class before `::`, its offsets, and a class's methods."""
    kind: str
    name: str
    owner: str
    begin: int
    end: int = 0
    lines: int = 0
    methods: int = 0
    parent: object = None


def name_of(head):
    """(owner, name) of a function's head."""
    for match in NAME.finditer(head):
        if match[2] not in ("decltype", "alignas", "__attribute__", "noexcept", "requires"):
            owner = re.sub(r"<.*?>", "", match[1]).rstrip(":").split("::")[-1]
            return owner, match[2]
    return "", ""


def kind_of(head, outer):
    """Kind of scope that a brace after `head` opens, in a scope of the kind `outer`."""
    text = re.sub(r"^\s*(?:template\s*<.*?>\s*(?=class|struct))", "", head, flags=re.S)
    if re.search(r"(?:^|\s)(?:namespace\b[^=;(]*|extern\s*)$", text):
        return "namespace"
    if outer in ("namespace", "class"):
        match = CLASS.search(text)
        if match and "(" not in text[:match.start()] and "=" not in text[:match.start()]:
            return "class"
        if "(" in text and not re.search(r"\benum\b|[^=!<>]=[^=]*$", re.sub(r"operator\s*\S+", "", text)):
            initial = re.search(r"\)\s*(?:noexcept\s*)?:[^:]", text)
            return "function" if FUNCTION_END.search(text) or (initial
                                                               and text.rstrip().endswith("}")) else "initializer"
    return "other"


def items(cpp):
    """All classes and functions, in the order in which they end."""
    code, out, stack, start = cpp.code, [], [], 0
    for mark in MARK.finditer(code):
        at, sign = mark.start(), mark[0]
        outer = stack[-1][0] if stack else "namespace"
        head = ACCESS.sub("", code[start:at])
        if sign == "{":
            kind = kind_of(head, outer)
            item = None
            if kind in ("class", "function"):
                owner, name = name_of(head) if kind == "function" else ("", CLASS.search(head)[1].split("::")[-1])
                begin = at - len(head.lstrip())
                parent = next((entry for what, entry, _ in reversed(stack) if what == "class"), None)
                item = Item(kind, name, owner, begin, parent=parent)
                if kind == "function" and outer == "class":
                    stack[-1][1].methods += 1
            stack.append((kind, item, start))
            if kind != "initializer":
                start = at + 1
        elif sign == "}" and stack:
            kind, item, before = stack.pop()
            if item:
                item.end = at
                item.lines = code.count("\n", item.begin, at) + 1
                out.append(item)
            start = before if kind == "initializer" else at + 1
        elif sign == ";":
            if outer == "class" and "(" in head and not NO_METHOD.search(head) and declares_method(head):
                stack[-1][1].methods += 1
            start = at + 1
    return out


def declares_method(head):
    """Whether a statement of a class declares a function: not a member that a call or a type with () initializes."""
    plain = re.sub(r"<[^;]*>(?=[\s\w]*(?:;|$|\w+\s*(?:=|\{|$)))", "", head)
    return bool(NAME.search(plain)) and not re.search(r"[^=!<>]=(?!\s*0\s*$)[^=]*\(",
                                                      re.sub(r"\([^()]*\)", "()", plain))
