#!/usr/bin/env python3
"""Tests of tools/house.py: each makes a tiny checkout with one fault, which the check must name, and one without."""
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[3] / "tools/house.py"
ROOMS = "Low = lib/Low include/par/Low :\nHigh = lib/High include/par/High : Low\n"
WORDS = "text  \\bbehind\\b   after\nany   \\bFuser\\b   GroupFuser\n"


class Faults(unittest.TestCase):
    def run_tool(self, files, *arguments):
        """Exit status and output of the tool on a checkout of these files."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            lists = {"tools/house/rooms.txt": ROOMS, "tools/house/words.txt": WORDS}
            for name, text in {**lists, **files}.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(textwrap.dedent(text).lstrip("\n"))
            done = subprocess.run([sys.executable, TOOL, "--root", root, *arguments], capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            self.left = {name: (root / name).read_text() for name in files}
            return done.returncode, done.stdout

    def holds(self, check, bad, good, *said):
        """The check finds the fault of `bad`, says these texts, and finds none in `good`."""
        status, output = self.run_tool(bad, "--only", check)
        for text in said:
            self.assertIn(text, output)
        self.assertEqual(status, 1, output)
        status, output = self.run_tool(good, "--only", check)
        self.assertEqual((status, output.count("\n")), (0, 1), output)

    def test_upward_arrow_and_circle(self):
        low, high = '#include "par/High/A.h"\n', '#include "par/Low/B.h"\n'
        heads = {"include/par/High/A.h": "", "include/par/Low/B.h": ""}
        self.holds("rooms", {**heads, "lib/Low/L.cpp": low, "lib/High/H.cpp": high}, {**heads, "lib/High/H.cpp": high},
                   "lib/Low/L.cpp: Low may not include High", "rooms include each other: High Low")

    def test_print_below_report(self):
        writes, gives = "void say(llvm::raw_ostream &os);\n", "std::string say();\n"
        self.holds("rooms", {"lib/Low/P.cpp": writes}, {"lib/Low/P.cpp": gives},
                   "lib/Low/P.cpp: only Report")

    def test_folder_in_no_room(self):
        self.holds("rooms", {"lib/Else/E.cpp": ""}, {"lib/Low/E.cpp": ""}, "rooms.txt has no such room")

    def test_rates_outside_of_costs(self):
        reads, asks = "int64_t t = bytes / hardware.memory;\n", "int64_t t = costs.copy(bytes).ns + hardware.ranks;\n"
        self.holds("costs", {"lib/Low/T.cpp": reads}, {"lib/Low/T.cpp": asks, "lib/Costs/C.cpp": reads},
                   "lib/Low/T.cpp:1: reads memory of a hardware file; ask CostTable")

    def test_names_that_meet_in_a_batch(self):
        hidden = lambda code: "namespace {\n" + code + "} // namespace\n"
        function = "int size(%s x) {\n  return 4;\n}\n"
        first = hidden(function % "int") + "static constexpr int maxLooks = 3;\n"
        one = {"lib/Low/A.cpp": first, "lib/Low/B.cpp": hidden(function % "long")}
        for text in ("static " + function % "int", hidden("struct maxLooks {\n  int x;\n};\n"),
                     "static const long maxLooks[] = {4};\n"):
            self.holds("batches", {**one, "lib/Low/C.cpp": text}, {**one, "lib/High/C.cpp": text},
                       "files of lib/Low are compiled together")

    def test_undeclared_attribute(self):
        declared = 'def A : Op<"a"> { let arguments = (ins StrAttr:$kept); }\n'
        code = ('constexpr StringLiteral lostAttr = "par.lost";\n'
                'void f(Operation *op) {\n  op->setAttr("kept", x);\n%s}\n')
        good = {"include/par/A.td": declared, "lib/Low/A.cpp": code % ""}
        for line in ('  op->setDiscardableAttr("lost", x);\n', "  op->getAttrOfType<StringAttr>(lostAttr);\n"):
            self.holds("attributes", {**good, "lib/Low/A.cpp": code % line}, good, "lib/Low/A.cpp:4: no .td declares")

    def test_long_file(self):
        self.holds("sizes", {"lib/Low/A.cpp": "int x;\n" * 601}, {"lib/Low/A.cpp": "int x;\n" * 600}, "601 lines")

    def test_long_function(self):
        code = "int f(int x) {\n%s  return x;\n}\n"
        self.holds("sizes", {"lib/Low/A.cpp": code % ("  ++x;\n" * 78)}, {"lib/Low/A.cpp": code % ("  ++x;\n" * 77)},
                   "f has 81 lines")

    def test_large_class(self):
        header = "class A {\npublic:\n  A(int x) : x{x} {}\n  int f(int y);\n  int x;\n};\n"
        body = "int A::f(int y) {\n%s  return y;\n}\n"
        files = {"lib/Low/A.h": header}
        many = lambda lines: {**files, **{f"lib/Low/A{k}.cpp": body % ("  ++y;\n" * 57) for k in range(lines)}}
        self.holds("sizes", many(5), many(4), "class A has 306 lines")

    def test_many_methods(self):
        code = "class A {\n  std::function<int(int)> member = nullptr;\n  A(const A &) = delete;\n%s};\n"
        methods = [f"  int f{k}(int x) const;\n" for k in range(20)]
        self.holds("sizes", {"lib/Low/A.h": code % "".join(methods + ["  int g() { return 1; }\n"])},
                   {"lib/Low/A.h": code % "".join(methods)}, "class A has 21 methods")

    def test_large_pass(self):
        main = '#define GEN_PASS_DEF_APASS\n#include "B.h"\n'
        part = '#include "B.h"\n' + "int x;\n" * 590
        good = {"lib/Low/A.cpp": main, "lib/Low/B.h": "int y;\n", "lib/Low/B.cpp": part}
        self.holds("sizes", {**good, "lib/Low/B.h": "int y;\n" * 20}, good, "A.cpp: the pass has 613 lines")

    def test_wide_line(self):
        for name in ("lib/Low/A.cpp", "python/par/a.py", "include/par/A.td", "tools/a.sh", "lib/CMakeLists.txt",
                     "test/Low/a.mlir"):
            comment = "//" if name.endswith((".cpp", ".td", ".mlir")) else "#"
            self.holds("form", {name: comment + "x" * 120 + "\n"}, {name: comment + "x" * 100 + "\n"},
                       "over 120 columns")

    def test_long_file_without_head(self):
        self.holds("form", {"lib/Low/A.cpp": "int x;\n" * 160}, {"lib/Low/A.cpp": "// Says x.\n" + "int x;\n" * 160},
                   "does not open with what it does")

    def test_banner(self):
        banner = "//===- A.cpp - says x ---===//\n"
        self.holds("form", {"lib/Low/A.cpp": banner + "int x;\n" * 160}, {"lib/Low/A.cpp": banner}, "does not open")

    def test_guard(self):
        self.holds("form", {"lib/Low/A.h": "#ifndef A_H\n"}, {"lib/Low/A.h": "#pragma once\n"}, "#pragma once")

    def test_constant(self):
        for name in ("kMaxDepth", "mostRows", "fewestRows"):
            self.holds("form", {"lib/Low/A.cpp": f"constexpr int {name} = 1;\n"},
                       {"lib/Low/A.cpp": f"// {name}\nconstexpr int maxRows = 1;\n"}, f"{name}: constants are named")

    def test_commit_subject(self):
        with tempfile.TemporaryDirectory() as folder:
            def git(*arguments):
                subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", folder, *arguments],
                               check=True,
                               capture_output=True)
            git("init", "-q")
            rule = pathlib.Path(folder) / "tools/house/subjects.py"
            rule.parent.mkdir(parents=True)
            rule.write_text("")
            git("add", ".")
            git("commit", "-q", "-m", "x" * 90)
            status = lambda: subprocess.run([sys.executable, TOOL, "--root", folder, "--only", "form"],
                                            capture_output=True, text=True)
            self.assertEqual(status().returncode, 0, status().stdout)
            git("commit", "-q", "--allow-empty", "-m", "y" * 73)
            self.assertIn("over 72 characters", status().stdout)

    def test_retired_words(self):
        for text in ("// It stands behind.\nint x;\n", "// Where it is, it stays.\nint x;\n", "struct Fuser {};\n",
                     'f("stands behind it");\n'):
            self.holds("words", {"lib/Low/A.cpp": text},
                       {"lib/Low/A.cpp": "// It follows. Is it? Where?\nint behind;\n"},
                       "the budget of Low in tools/house/budget.txt is 0")

    def test_budget_falls(self):
        files = {"lib/Low/A.cpp": "// It stands behind.\nint x;\n", "tools/house/budget.txt": "# Head.\nLow 2 1 0\n"}
        status, output = self.run_tool(files, "--only", "words")
        self.assertEqual(status, 1)
        self.assertIn("lower the budget of words to 1", output)
        self.assertIn("lower the budget of sentences to 0", output)
        status, output = self.run_tool(files, "--only", "words", "--update")
        self.assertEqual(status, 0, output)
        self.assertEqual(self.left["tools/house/budget.txt"], "# Head.\nLow 1 0 0\n")

    def test_unquoted_error(self):
        code = 'void f() {\n  emitError(loc) << "no such axis " << name << " here";\n}\n'
        table = '#define MESSAGES(M) \\\n  M(noAxis, "no such axis \\"{}\\", "      \\\n            "expected {}")\n'
        for text in (code, table):
            self.holds("errors", {"lib/Low/A.cpp": text},
                       {"lib/Low/A.cpp": text, "test/Low/a.test": 'no such axis "a", expected'},
                       "no test quotes")

    def test_unknown_flag_and_key(self):
        keys = {"mesh": "<map>", "mesh.<axis>": "<int>", "batch": "<map>", "batch.size": "<int>"}
        schema = "".join(f'  {{"{key}", "{values}", "", ""}},\n' for key, values in keys.items())
        flags = '{"--check", Flag::Nothing, true, "", ""},\n{"--auto", Flag::Nothing, false, "", ""},\n'
        good = {"lib/Plan/Language/Schema.cpp": schema, "tools/a.cpp": flags,
                "docs/plan.md": "`--check` and `--auto`†\n```yaml\nmesh: {dp: 2, tp: 4}\nbatch:\n  size: 8\n```\n"}
        for page in ("`--chek`", "`--auto`", "```yaml\nbatch: {sise: 8}\n```\n", "```yaml\nmash: {dp: 2}\n```\n",
                     "`batch.sise: 8`"):
            self.holds("docs", {**good, "docs/plan.md": page}, good, "docs/plan.md: ")

    def test_exceptions_shrink(self):
        listed = {"lib/Low/A.cpp": "int x;\n" * 601,
                  "tools/house/exceptions.txt": "file-lines lib/Low/A.cpp 601 A table.\n"}
        self.assertEqual(self.run_tool(listed, "--only", "sizes")[0], 0)
        status, output = self.run_tool({**listed, "lib/Low/A.cpp": "int x;\n" * 602}, "--only", "sizes")
        self.assertIn("its exception allows 601", output)
        status, output = self.run_tool({**listed, "lib/Low/A.cpp": "int x;\n"}, "--only", "sizes")
        self.assertEqual(status, 1)
        self.assertIn("the exception is not needed any more", output)
        bare = {**listed, "tools/house/exceptions.txt": "file-lines lib/Low/A.cpp 601\n"}
        self.assertIn("has no reason", self.run_tool(bare, "--only", "sizes")[1])


if __name__ == "__main__":
    unittest.main()
