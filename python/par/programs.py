"""The programs of Par as a package installs them: par-compile, par-run, par-verify and par-opt start those that
libraries.home() finds, in their own process."""
import os
import sys

from .errors import Error
from .libraries import find


def par_compile():
    _become("par-compile")


def par_run():
    _become("par-run")


def par_verify():
    _become("par-verify")


def par_opt():
    _become("par-opt")


def _become(name):
    try:
        program = str(find(f"bin/{name}"))
        if os.path.exists(sys.argv[0]) and os.path.samefile(program, sys.argv[0]):
            raise Error(f"{program} is pip's and starts another one; set PAR_HOME to a folder of Par's build", code=2)
        os.execv(program, [program, *sys.argv[1:]])
    except Error as error:
        reason, code = error, error.code
    except OSError as error:
        reason, code = f"error: {program} cannot be started: {error.strerror}", 2
    print(f"{name}: {reason}", file=sys.stderr)
    sys.exit(code)
