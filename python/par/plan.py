"""Plans as Python gives them: files, dicts and settings; and a plan completed for a model."""
from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any, Optional, Union

from .errors import Error
from .findings import take
from .libraries import CompileOptions, compiler


def complete_plan(model: Optional[Union[str, os.PathLike[str]]] = None, plan: Any = None, *, set: Any = None) -> str:
    """The plan as Par reads it for `model`, as text: every key, and in a comment who said it.

    The output of `par-compile MODEL PLAN --print-plan`. Arguments as of par.compile; without a model, settings that
    depend on it stay open. Raises par.Error.
    """
    library = compiler()
    with compile_options(model, plan, set) as options:
        return take(library, library.par_complete_plan(ctypes.byref(options)), options.places)[0]


@contextlib.contextmanager
def compile_options(model, plan, settings, out=None, flags=0, plugins=()):
    """CompileOptions for the compiler, valid within the block."""
    files, said = split_plan(plan)
    said += read_settings(settings)
    plugins = [plugins] if isinstance(plugins, (str, os.PathLike)) else list(plugins)
    options = CompileOptions(size=ctypes.sizeof(CompileOptions), plan_count=len(files), setting_count=len(said),
                             flags=flags, plugin_count=len(plugins))
    options.plans, options.settings, options.plugins = _strings(files), _strings(said), _strings(plugins)
    options.model = None if model is None else os.fsencode(model)
    options.output = None if out is None else os.fsencode(out)
    options.places = _places(plan)
    yield options


def _places(plan):
    """Names of the settings that a plan's dicts become: {"--set batch=8": "plan: batch"}."""
    parts = plan if isinstance(plan, (list, tuple)) else [plan]
    return {f"--set {setting}": f"plan: {key}" for part in parts if isinstance(part, dict)
            for key, setting in zip(part, _settings_of(part))}


def _settings_of(part):
    return [f"{_key(key)}={to_yaml(value)}" for key, value in part.items()]


def split_plan(plan):
    """(files, settings) of a plan: a path, a dict, or a list of these in which dicts come after the files."""
    if plan is None:
        return [], []
    parts = plan if isinstance(plan, (list, tuple)) else [plan]
    files, settings = [], []
    for part in parts:
        if isinstance(part, dict):
            settings += _settings_of(part)
        elif settings:
            raise Error("a plan file stands after a dict; dicts override files, so give them last", code=2)
        elif isinstance(part, (str, os.PathLike)):
            files.append(os.fspath(part))
        else:
            raise Error(f"a plan is a path or a dict, found {type(part).__name__}", code=2)
    return files, settings


def read_settings(settings):
    """"KEY=VALUE" texts of a dict ({"mesh.dp": 4}) or of such texts."""
    if settings is None:
        return []
    if isinstance(settings, dict):
        return [f"{key}={to_yaml(value)}" for key, value in settings.items()]
    if isinstance(settings, str):
        return [settings]
    return [str(setting) for setting in settings]


def to_yaml(value):
    """A Python value in the plan language, on one line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quote(str(key))}: {to_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(to_yaml, value)) + "]"
    if isinstance(value, (str, os.PathLike)):
        return _quote(os.fspath(value))
    raise Error(f"a plan holds numbers, texts, lists and dicts, found {type(value).__name__}", code=2)


def _quote(text):
    plain = text and all(c.isalnum() or c in "_-./" for c in text) and text[0] not in "-."
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _key(key):
    """A top-level key of a dict: its dots are a part of the name."""
    return f'"{key}"' if "." in str(key) else str(key)


def _strings(texts):
    return (ctypes.c_char_p * len(texts))(*[os.fsencode(text) for text in texts])
