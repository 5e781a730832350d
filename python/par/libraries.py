"""Finds Par's compiled parts: the library that compiles, and the programs that run and verify."""
import ctypes
import os
import pathlib
import shutil
import threading

from .errors import Error

COMPILER = "lib/libpar-compiler.so"
COMPILER_ABI = 2  # of include/par/C/Compiler.h
CHECK, CHECK_PHASES = 1, 2

_loaded = {}
_loading = threading.Lock()


def home():
    """Folders that may hold Par's lib/ and bin/, the likeliest first.

    PAR_HOME if it is set, and then nothing else: a build folder, or what was installed from one. Otherwise build/ of
    the source tree that this package is read from, and the folder above that of a par-compile on the PATH.
    """
    said = os.environ.get("PAR_HOME")
    if said:
        return [pathlib.Path(said)]
    folders = [pathlib.Path(__file__).resolve().parents[2] / "build"]
    tool = shutil.which("par-compile")
    if tool:
        folders.append(pathlib.Path(tool).resolve().parents[1])
    return folders


def find(name):
    """The file `name` ("lib/libpar-compiler.so", "bin/par-run") of the first folder that has it. Raises par.Error."""
    folders = home()
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    searched = ", ".join(str(folder / name) for folder in folders)
    raise Error(f"{pathlib.PurePath(name).name} is not built or not found: there is no {searched}", code=2,
                notes=["build Par (cmake -G Ninja -B build && ninja -C build) and set PAR_HOME to its build folder"])


class Finding(ctypes.Structure):
    """ParFinding of include/par/C/Compiler.h."""
    _fields_ = [("warning", ctypes.c_int), ("file", ctypes.c_char_p), ("line", ctypes.c_uint),
                ("column", ctypes.c_uint), ("message", ctypes.c_char_p), ("shown", ctypes.c_char_p),
                ("notes", ctypes.POINTER(ctypes.c_char_p)), ("note_count", ctypes.c_size_t)]


class CompileOptions(ctypes.Structure):
    """ParCompileOptions of include/par/C/Compiler.h."""
    _fields_ = [("size", ctypes.c_size_t), ("model", ctypes.c_char_p), ("plans", ctypes.POINTER(ctypes.c_char_p)),
                ("plan_count", ctypes.c_size_t), ("settings", ctypes.POINTER(ctypes.c_char_p)),
                ("setting_count", ctypes.c_size_t), ("output", ctypes.c_char_p), ("flags", ctypes.c_uint)]


def compiler():
    """libpar-compiler.so with its functions typed; loaded once. Raises par.Error."""
    path = find(COMPILER)
    with _loading:
        if path not in _loaded:
            _loaded[path] = _load(path)
        return _loaded[path]


def _load(path):
    try:
        library = ctypes.CDLL(str(path))
        library.par_compiler_abi.restype = ctypes.c_uint
        abi = library.par_compiler_abi()
    except (OSError, AttributeError) as reason:
        raise Error(f"cannot be loaded: {reason}", code=2, file=str(path)) from reason
    if abi != COMPILER_ABI:
        raise Error(f"has ABI {abi}, this package calls {COMPILER_ABI}; use both of one version", code=2,
                    file=str(path))
    result, text = ctypes.c_void_p, ctypes.c_char_p
    for name, returns, takes in [
            ("par_compile", result, [ctypes.POINTER(CompileOptions)]),
            ("par_complete_plan", result, [ctypes.POINTER(CompileOptions)]), ("par_list", result, [text, text]),
            ("par_result_code", ctypes.c_int, [result]), ("par_result_text", text, [result]),
            ("par_result_report", text, [result]), ("par_result_bundle", text, [result]),
            ("par_result_finding_count", ctypes.c_size_t, [result]),
            ("par_result_finding", ctypes.POINTER(Finding), [result, ctypes.c_size_t]),
            ("par_result_free", None, [result])]:
        function = getattr(library, name)
        function.restype, function.argtypes = returns, takes
    return library
