"""par.Error: what every part of Par raises."""
from typing import Any, Iterable, Optional


class Error(Exception):
    """Something that Par refuses, with the words that the command line tools use.

    code: the tools' exit code (1 wrong input, 2 wrong call, 3 it cannot be, 4 a rank died, 5 the numbers failed).
    message: one sentence in lower case. notes: where it comes from and what to do. file, line, column: the place in a
    plan or a model, None where there is none. findings: all errors and warnings of a compilation, of which this one is
    the first error; str() prints all of them.
    """

    def __init__(self, message: str, *, code: int = 1, notes: Iterable[str] = (), file: Optional[str] = None,
                 line: Optional[int] = None, column: Optional[int] = None, shown: str = "",
                 findings: Iterable[Any] = ()) -> None:
        self.message, self.code, self.notes = message, code, tuple(notes)
        self.file, self.line, self.column = file, line, column
        self.findings = list(findings)
        place = "" if file is None else file + (f":{line}:{column}" if line else "") + ": "
        lines = [f"{place}error: {message}", *shown.splitlines()] + [f"  note: {note}" for note in self.notes]
        super().__init__("\n".join(map(str, self.findings)) if len(self.findings) > 1 else "\n".join(lines))
