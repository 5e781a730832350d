"""Docs: flags and plan keys that a page speaks of exist. A flag of Par is one of a tool's table; one that the table
refuses as not supported yet is marked † in docs/plan.md, or stands in a part about what is not built. Keys in the
plans of a page (blocks of yaml, and `a.b: value` in a line) are keys of lib/Plan/Language/Schema.cpp; one with † is
refused there. test/Driver/page-flags.test holds the page's lists of flags against --help; this needs no build.
"""

import re

from house.sources import Fault

# Flags of other programs that pages call, and of a pass that the tutorial has its reader write.
OTHERS = {"--no-python", "--nnodes", "--nproc-per-node", "--node-rank", "--master-addr", "--master-port", "--host",
          "--bind-to", "--nodes", "--ntasks-per-node", "--cpus-per-task", "--mpi",  # of torchrun, mpirun, Slurm, Docker
          "--mlir-print-ir-after-all", "--split-input-file", "--verify-diagnostics", "--run-reproducer",
          "--gpus-per-node", "--gpus-per-task", "--hostname", "--ipc", "--network", "--shm-size", "--ulimit",
          "--nproc-per-node", "--no-python", "--par-fold-double-negation"}
ROADMAP = "docs/roadmap.md"
LATER = re.compile(r"^## .*(?:not built|not yet|later|roadmap)", re.I | re.M)
FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]*[a-z])`?(†?)")
PATH = re.compile(r"`((?:[a-z_]+\.)+[a-z_]+):[^`]*`")


class Tables:
    """The flags of the tools and the keys of the plan, as their tables in the code say."""

    def __init__(self, tree):
        self.flags, self.later, self.keys = set(), set(), {}
        for file in tree.named(".cpp", under=("lib/", "tools/", "runtime/")):
            text = tree.read(file)
            if file.endswith("Schema.cpp"):
                for path, values in re.findall(r'^\s*\{"([\w.<>]+)", "([^"]*)"', text, re.M):
                    self.keys[path] = values
            self.flags.update(re.findall(r'"(--[a-z][a-z-]+)', text))
            pipelines = re.findall(r'PassPipelineRegistration<\w*>\(\s*"([\w-]+)"', text)
            self.flags.update("--" + name for name in pipelines)
            self.later.update(re.findall(r'\{"(--[a-z-]+)", Flag::\w+, false', text))
            for table in re.findall(r"laterFlags\[\] = \{(.*?)\}", text, re.S):
                self.later.update(re.findall(r'"(--[a-z-]+)"', table))
            if file.endswith("ForeignNames.cpp"):  # other systems' keys, which are their flags too
                self.flags.update("--" + name.replace("_", "-") for name in re.findall(r'\{"(\w+)"', text))
        self.flags |= OTHERS
        for file in tree.named(".td"):
            self.flags.update("--" + name for name in re.findall(r'Pass<"([\w-]+)"', tree.read(file)))
        for file in tree.named(".py", ".sh", "gpu-check", under=("tools/", "bench/", "python/", "test/")):
            self.flags.update(re.findall(r'(--[a-z][a-z-]+)', tree.read(file)))

    def knows(self, path):
        """Whether a path of names is a key, whose segments in <> stand for any name."""
        names = path.split(".")
        return any(len(key.split(".")) == len(names) and
                   all(one.startswith("<") or one == name for one, name in zip(key.split("."), names))
                   for key in self.keys)

    def takes_any(self, path):
        """Whether the value of a key is a mapping, list or text whose inside is not the language's."""
        below = path + "."
        return not any(self.fits(key, below) for key in self.keys)

    @staticmethod
    def fits(key, below):
        segments, names = key.split("."), below.split(".")[:-1]
        return len(segments) > len(names) and all(s.startswith("<") or s == n for s, n in zip(segments, names))


def plan_paths(text):
    """Key paths of a plan as YAML: mappings by indentation, and {..} in a line."""
    paths, stack = [], []
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*", "", line)
        match = re.match(r"(\s*)([\w.*{}?\[\]()\"'^, -]+?):(?:\s+(.*))?$", line)
        if not match or line.startswith("---"):
            continue
        indent, name, value = len(match[1]), match[2].strip("\"'"), match[3] or ""
        while stack and stack[-1][0] >= indent:
            stack.pop()
        path = [entry[1] for entry in stack] + [name.replace(".", "\0")]
        paths.append(path)
        stack.append((indent, path[-1]))
        paths += flow_paths(value, path)
    return [".".join(path) for path in paths]


def flow_paths(text, path):
    """Paths of the keys of `{a: 1, b: {c: [{d: 2}]}}`; what stands in a list is below the list's key."""
    out, at = [], 0

    def read(path):
        nonlocal at
        if text[at:at + 1] not in ("{", "["):
            while at < len(text) and text[at] not in ",}]":
                at += 1
            return
        close, in_map = {"{": "}", "[": "]"}[text[at]], text[at] == "{"
        at += 1
        while at < len(text) and text[at] != close:
            match = re.compile(r"\s*([^,:{}\[\]]+):(?=\s|[{\[])\s*").match(text, at) if in_map else None
            if match:
                at = match.end()
                below = path + [match[1].strip(" \"'").replace(".", "\0")]
                out.append(below)
                read(below)
            elif text[at] in ", ":
                at += 1
            else:
                read(path)
                if at < len(text) and text[at] in "}]" and text[at] != close:
                    at += 1
        at += 1

    if text[:1] in ("{", "["):
        read(path)
    return out


def claims(tree):
    """(page, kind, name, what is wrong) of every false claim, and the number of claims."""
    tables, wrong, number = Tables(tree), [], 0
    if not tables.keys:
        return [], 0
    for page in tree.named(".md", under=("docs/", "README.md")):
        text = tree.read(page)
        later_part = page == ROADMAP
        match = LATER.search(text)
        built = "" if later_part else text[:match.start()] if match else text
        for flag, mark in set(FLAG.findall(text)):
            number += 1
            if flag not in tables.flags and flag not in tables.later:
                wrong.append((page, "flag", flag, "no tool has this flag"))
            elif mark and flag not in tables.later:
                wrong.append((page, "flag", flag, "is marked † and no table refuses it"))
        unmarked = {flag for flag, mark in FLAG.findall(built) if not mark}
        marked = {flag for flag, mark in FLAG.findall(text) if mark}
        for flag in sorted((unmarked & tables.later) - marked - {"--json", "--color", "--threads"}):
            wrong.append((page, "flag", flag, "is refused as not supported yet, and the page does not mark it †"))
        samples = [path for block in re.findall(r"```yaml\n(.*?)```", text, re.S) for path in plan_paths(block)]
        samples += PATH.findall(text)
        for path in sorted(set(samples)):
            number += 1
            parent = path.rpartition(".")[0]
            if not tables.knows(path) and not (parent and tables.takes_any(parent)):
                wrong.append((page, "key", path.replace("\0", "."), "the plan language has no such key"))
    return wrong, number


def check(tree):
    return [Fault(kind, f"{page}:{re.sub(r'[^!-~]+', '-', name)}", 1, f"{page}: {name}: {what}")
            for page, kind, name, what in claims(tree)[0]]
