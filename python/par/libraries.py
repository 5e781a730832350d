"""Finds Par's compiled parts: the library that compiles, and the programs that run and verify."""
import ctypes
import os
import pathlib
import threading
from typing import Any

from .errors import Error

COMPILER = "lib/libpar-compiler.so"
COMPILER_ABI = 3  # of include/par/C/Compiler.h
CHECK, CHECK_PHASES, WITH_WEIGHTS = 1, 2, 4
RUNTIME = "lib/libpar-runtime.so"
RUNTIME_ABI = 1  # of runtime/include/par/api/par.h
PACKAGE = pathlib.Path(__file__).resolve().parent
ISOLATED, BUSY = 1, 64

_loaded = {}
_loading = threading.Lock()


def home():
    """Folders that may hold Par's lib/ and bin/, in the order in which they are searched.

    PAR_HOME if it is set, and then nothing else: a build folder, or where `cmake --install` put one. Otherwise native/
    of this package, where a wheel has its compiled parts; build/ of the source tree that this package is read or was
    installed from; and the folder above that of each par-compile on the PATH, if lib/ lies beside it.
    """
    said = os.environ.get("PAR_HOME")
    if said:
        return [pathlib.Path(said)]
    folders = [PACKAGE / "native"]
    source = source_tree()
    if source:
        folders.append(source / "build")
    for place in os.get_exec_path():
        tool = pathlib.Path(place, "par-compile")
        if tool.is_file():  # pip's own par-compile only starts what is found here, and has no lib/libpar-*.so
            folder = tool.resolve().parents[1]
            if any((folder / library).is_file() for library in (COMPILER, RUNTIME)):
                folders.append(folder)
    return folders


def source_tree():
    """The source tree that this package is read from, else the one that `pip install ./python` found; None without."""
    if (PACKAGE.parents[1] / "CMakeLists.txt").is_file():
        return PACKAGE.parents[1]
    noted = PACKAGE / "source.txt"  # by setup.py
    if not noted.is_file():
        return None
    source = pathlib.Path(noted.read_text(encoding="utf-8").strip())
    return source if (source / "CMakeLists.txt").is_file() else None


def find(name):
    """The file `name` ("lib/libpar-compiler.so", "bin/par-run") of the first folder that has it. Raises par.Error."""
    folders = home()
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    searched = ", ".join(str(folder / name) for folder in folders)
    raise Error(f"{pathlib.PurePath(name).name} is not built or not found: there is no {searched}", code=2,
                notes=[_way_out()])


def _way_out():
    """The one thing to do where a compiled part is not found."""
    if os.environ.get("PAR_HOME"):
        return "set PAR_HOME to a build folder of Par or to where it is installed, or unset it"
    source = source_tree()
    if source:
        return f"build Par: {source / 'tools/build.sh'}"
    return "set PAR_HOME to a build folder of Par or to where it is installed"


class Finding(ctypes.Structure):
    """ParFinding of include/par/C/Compiler.h."""
    _fields_ = [("warning", ctypes.c_int), ("file", ctypes.c_char_p), ("line", ctypes.c_uint),
                ("column", ctypes.c_uint), ("message", ctypes.c_char_p), ("shown", ctypes.c_char_p),
                ("notes", ctypes.POINTER(ctypes.c_char_p)), ("note_count", ctypes.c_size_t)]


class CompileOptions(ctypes.Structure):
    """ParCompileOptions of include/par/C/Compiler.h."""
    _fields_ = [("size", ctypes.c_size_t), ("model", ctypes.c_char_p), ("plans", ctypes.POINTER(ctypes.c_char_p)),
                ("plan_count", ctypes.c_size_t), ("settings", ctypes.POINTER(ctypes.c_char_p)),
                ("setting_count", ctypes.c_size_t), ("output", ctypes.c_char_p), ("flags", ctypes.c_uint),
                ("plugins", ctypes.POINTER(ctypes.c_char_p)), ("plugin_count", ctypes.c_size_t)]


class OpenOptions(ctypes.Structure):
    """ParOpenOptions of par/api/par.h."""
    _fields_ = [("size", ctypes.c_size_t), ("arguments", ctypes.POINTER(ctypes.c_char_p)),
                ("argument_count", ctypes.c_size_t), ("flags", ctypes.c_uint), ("worker", ctypes.c_char_p)]


class JobError(ctypes.Structure):
    """ParError of par/api/par.h."""
    _fields_ = [("code", ctypes.c_int), ("place", ctypes.c_char_p), ("message", ctypes.c_char_p),
                ("notes", ctypes.c_char_p), ("text", ctypes.c_char_p)]


class Scalar(ctypes.Structure):
    """ParScalar of par/api/par.h."""
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]


class Array(ctypes.Structure):
    """ParArray of par/api/par.h."""
    _fields_ = [("type", ctypes.c_int), ("dims", ctypes.c_size_t), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p)]


class Position(ctypes.Structure):
    """ParPosition of par/api/par.h."""
    _fields_ = [("step", ctypes.c_uint64), ("skipped", ctypes.c_uint64), ("rows", ctypes.c_uint64)]


def compiler():
    """libpar-compiler.so with its functions typed; loaded once. Raises par.Error."""
    result, text, options = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(CompileOptions)
    return _library(COMPILER, "par_compiler_abi", COMPILER_ABI, [
        ("par_compile", result, [options]), ("par_complete_plan", result, [options]),
        ("par_fit", result, [options, text]), ("par_list", result, [text, text]),
        ("par_what_if", result, [options, ctypes.POINTER(text), ctypes.c_size_t]),
        ("par_result_code", ctypes.c_int, [result]),
        ("par_result_text", text, [result]), ("par_result_report", text, [result]),
        ("par_result_bundle", text, [result]), ("par_result_finding_count", ctypes.c_size_t, [result]),
        ("par_result_finding", ctypes.POINTER(Finding), [result, ctypes.c_size_t]),
        ("par_result_free", None, [result])])


def runtime() -> Any:
    """libpar-runtime.so with its functions typed; loaded once. Raises par.Error."""
    job, text, code, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
    shape = ctypes.POINTER(ctypes.c_int64)
    return _library(RUNTIME, "par_runtime_abi", RUNTIME_ABI, [
        ("par_open", job, [ctypes.POINTER(OpenOptions)]), ("par_close", code, [job]),
        ("par_error", ctypes.POINTER(JobError), [job]), ("par_facts", text, [job]),
        ("par_feed", code, [job, text, ctypes.c_void_p, code, shape, size]),
        ("par_feed_ahead", code, [job, text, ctypes.c_void_p, code, shape, size]),
        ("par_forget", code, [job]), ("par_run", code, [job, text]),
        ("par_scalars", ctypes.POINTER(Scalar), [job, ctypes.c_uint64, ctypes.POINTER(size)]),
        ("par_result", code, [job, text, ctypes.POINTER(Array)]),
        ("par_set", code, [job, text, ctypes.c_double]),
        ("par_get", code, [job, text, ctypes.POINTER(ctypes.c_double)]),
        ("par_read", code, [job, text, ctypes.c_void_p, size]),
        ("par_write", code, [job, text, ctypes.c_void_p, code, shape, size]),
        ("par_load", code, [job, ctypes.POINTER(text), size]), ("par_resume", code, [job, text]),
        ("par_save", code, [job, text, ctypes.c_uint64]), ("par_open_folder", code, [job, text, ctypes.c_uint64]),
        ("par_export", code, [job, text]),
        ("par_position", code, [job, ctypes.POINTER(Position)]), ("par_text", text, [job]),
        ("par_event", text, [job])])


def _library(name, abi_name, wanted, functions):
    path = find(name)
    with _loading:
        if path not in _loaded:
            _loaded[path] = _load(path, abi_name, wanted, functions)
        return _loaded[path]


def _load(path, abi_name, wanted, functions):
    try:
        library = ctypes.CDLL(str(path))
        abi_of = getattr(library, abi_name)
        abi_of.restype = ctypes.c_uint
        abi = abi_of()
    except (OSError, AttributeError) as reason:
        raise Error(f"cannot be loaded: {reason}", code=2, file=str(path)) from reason
    if abi != wanted:
        raise Error(f"has ABI {abi}, this package calls {wanted}; use both of one version", code=2, file=str(path))
    for function_name, returns, takes in functions:
        function = getattr(library, function_name, None)
        if function is None:
            raise Error(f"has no {function_name}, which this package calls; use both of one version", code=2,
                        file=str(path))
        function.restype, function.argtypes = returns, takes
    return library
