"""par.Error: what every part of Par raises."""


class Error(Exception):
    """Something that Par refuses, with the words that the command line tools use.

    code: the tools' exit code (1 wrong input, 2 wrong call, 3 it cannot be, 4 a rank died, 5 the numbers failed).
    message: one sentence in lower case. notes: where it comes from and what to do. file, line, column: the place in a
    plan or a model, None where there is none.
    """

    def __init__(self, message, *, code=1, notes=(), file=None, line=None, column=None):
        self.message, self.code, self.notes = message, code, tuple(notes)
        self.file, self.line, self.column = file, line, column
        place = "" if file is None else f"{file}:" + (f"{line}:{column}:" if line else "") + " "
        super().__init__("\n".join([f"{place}error: {message}"] + [f"  note: {note}" for note in self.notes]))
