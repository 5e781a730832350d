"""A checkout as the checks see it: its files, their texts, and C++ taken apart into code, comments and strings."""
import dataclasses
import functools
import pathlib
import re
import subprocess

CPP = (".h", ".cpp", ".cu", ".cuh")
LISTS = pathlib.PurePosixPath("tools/house")

# Comments and literals of C++, whichever begins first.
TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)


@dataclasses.dataclass
class Fault:
    """A rule that does not hold. `key` names it without line numbers; `value` is its size where it has one."""
    check: str
    key: str
    value: int
    message: str


@dataclasses.dataclass
class Literal:
    """A string of C++ as it is written, between its quotes, and the offset at which it begins."""
    at: int
    text: str
    raw: bool


class Cpp:
    """A C++ file: `code` has blanks in place of comments, strings and directives, at equal offsets."""

    def __init__(self, text):
        self.text, self.strings, self.comments = text, [], []
        code, last = [], 0
        for match in TOKENS.finditer(text):
            token = match[0]
            if token.startswith("/"):
                self.comments.append((match.start(), token))
            elif token[0] != "'":
                raw = token.startswith("R")
                inner = token[token.index("(") + 1:token.rindex(")")] if raw else token[1:-1]
                self.strings.append(Literal(match.start(), inner, raw))
            code += [text[last:match.start()], re.sub(r"[^\n]", " ", token)]
            last = match.end()
        code = "".join(code + [text[last:]])
        self.code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), code, flags=re.M)

    def line(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def comment_blocks(self):
        """Texts of comments; adjacent lines are one text."""
        blocks, end = [], -1
        for at, token in self.comments:
            words = re.sub(r"^/\*+|\*+/$|^//[/<!]*", "", token).strip()
            own_line = not self.text[self.text.rfind("\n", 0, at) + 1:at].strip()
            if blocks and own_line and not self.text[end:at].strip() and self.text.count("\n", end, at) == 1:
                blocks[-1] += "\n" + words
            else:
                blocks.append(words)
            end = at + len(token)
        return blocks


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.has_git = (self.root / ".git").exists()
        if self.has_git:
            names = self.git("ls-files").splitlines()
        else:
            names = [path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()]
        self.files = sorted(name for name in names if (self.root / name).is_file())

    def git(self, *arguments):
        done = subprocess.run(["git", "-C", str(self.root), *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    @functools.lru_cache(maxsize=None)
    def read(self, name):
        return (self.root / name).read_text(errors="replace")

    @functools.lru_cache(maxsize=None)
    def cpp(self, name):
        return Cpp(self.read(name))

    def named(self, *endings, under=("",)):
        """Files with one of these endings in one of these folders."""
        return [name for name in self.files if name.endswith(endings) and name.startswith(tuple(under))]

    def source(self):
        """C++ without tests."""
        return self.named(*CPP,
                          under=("lib/", "include/", "runtime/src/", "runtime/include/", "runtime/tools/", "tools/"))

    def list_lines(self, name, shared=False):
        """Lines of one of the lists of tools/house/ without comments and blank ones. A checkout that lacks the list has
        an empty one, or this script's own where it is `shared`: then two checkouts are counted by the same words."""
        path = self.root / LISTS / name
        if not path.is_file():
            path = pathlib.Path(__file__).parent / name
            if not shared or not path.is_file():
                return []
        return [line.rstrip() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]

    @functools.lru_cache(maxsize=None)
    def tests(self):
        """All text of the tests as one string, in which adjacent C++ literals are joined and quotes are plain."""
        binary = (".onnx", ".safetensors", ".npy", ".bin", ".pb", ".data")
        names = [n for n in self.files
                 if n.startswith(("test/", "python/tests/", "runtime/test/")) and not n.endswith(binary)]
        text = "\n".join(self.read(name) for name in names)
        joined = re.sub(r'"\s*\n\s*(?:R?"\(?)', "", text)
        return text + "\n" + joined.replace('\\"', '"').replace("\\\\", "\\")
