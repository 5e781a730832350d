"""par.verify: proves a bundle from only its files, as par-verify does."""
from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Dict

from .errors import Error
from .libraries import find


def verify(bundle: Any) -> Dict[str, Any]:
    """Proves that the communication of all ranks matches and cannot deadlock, and that memory is used as it should be.

    bundle: a Bundle or a folder. Runs the program par-verify. Returns a dict of what was counted (programs, ranks,
    communications, ...). Raises par.Error: code 3 with a shortest counterexample in its notes, 1 where it is no bundle
    or one that cannot be read as its manifest says.
    """
    done = subprocess.run([str(find("bin/par-verify")), os.fspath(bundle), "--json"], capture_output=True, text=True)
    if not done.stdout:
        raise from_text(done.stderr, done.returncode)
    verdict = json.loads(done.stdout)
    if not verdict["proved"]:
        raise Error(f"{verdict['message']} ({verdict['property']})", code=done.returncode, notes=verdict["notes"],
                    file=verdict["bundle"])
    return {name: value for name, value in verdict.items() if name not in ("bundle", "proved")}


def from_text(text, code):
    """A tool's text on its standard error as a par.Error."""
    lines = text.strip().splitlines()
    first = next((i for i, line in enumerate(lines) if "error: " in line), None)
    if first is None:
        return Error(lines[-1] if lines else f"the tool ended with code {code}", code=code)
    place, _, message = lines[first].partition("error: ")
    notes = [line.strip().removeprefix("note: ") for line in lines[first + 1:]]
    file = place.removesuffix(": ")  # the tool itself where its flags are wrong
    return Error(message, code=code, notes=notes, file=file if file not in ("", "par-run", "par-verify") else None)
