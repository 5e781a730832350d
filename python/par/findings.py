"""Results of libpar-compiler.so as Python values; errors become par.Error."""
import dataclasses
from typing import Optional, Tuple

from .errors import Error


@dataclasses.dataclass(frozen=True)
class Finding:
    """One error or warning of the compiler.

    file: a plan, the model, the bundle, "plan: K" for a key of a plan that is a dict, or "--set K=V" for a setting;
    None where the call itself is wrong.
    line, column: from 1; None where no line is meant. message: one sentence in lower case. shown: the line of the file
    and a caret below the column, "" without one. notes: the other culprit, or the way out.
    """
    warning: bool
    file: Optional[str]
    line: Optional[int]
    column: Optional[int]
    message: str
    shown: str = ""
    notes: Tuple[str, ...] = ()

    def __str__(self):
        place = "" if self.file is None else self.file + (f":{self.line}:{self.column}" if self.line else "") + ": "
        return "\n".join([f"{place}{'warning' if self.warning else 'error'}: {self.message}", *self.shown.splitlines()]
                         + [f"  note: {note}" for note in self.notes])


def take(library, result, places=None):
    """(text, bundle folder or None, warnings, report or None) of a ParResult, which is freed. Raises par.Error where it
    failed. places: names of files in findings, by the compiler's names."""
    try:
        code = library.par_result_code(result)
        text = library.par_result_text(result).decode(errors="replace")
        bundle = _text(library.par_result_bundle(result))
        report = _text(library.par_result_report(result))
        found = [_copy(library.par_result_finding(result, i).contents, places or {})
                 for i in range(library.par_result_finding_count(result))]
    finally:
        library.par_result_free(result)
    errors = [finding for finding in found if not finding.warning]
    if code:
        first = errors[0] if errors else Finding(False, None, None, None, f"the compiler ended with code {code}")
        raise Error(first.message, code=code, notes=first.notes, file=first.file, line=first.line, column=first.column,
                    shown=first.shown, findings=found)
    return text, bundle, [finding for finding in found if finding.warning], report


def _text(value):
    return None if value is None else value.decode(errors="replace")


def _copy(c, places):
    notes = tuple(c.notes[i].decode(errors="replace") for i in range(c.note_count))
    file = _text(c.file)
    return Finding(bool(c.warning), places.get(file, file), c.line or None, c.column or None,
                   c.message.decode(errors="replace"), _text(c.shown) or "", notes)
