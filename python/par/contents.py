"""The list of help(par): names that a user calls, as the package's own, and no modules."""
from __future__ import annotations

import importlib.machinery as machinery
import pkgutil
import sys
from typing import Any, Dict, Iterable


class _Unlisted(machinery.FileFinder):
    """Finds the modules of a folder, and lists none of them."""


def show_only(names: Iterable[str], package: Dict[str, Any]) -> None:
    """Classes and functions of these names are said to be the package's; its modules are imported as ever, and
    pydoc, which asks pkgutil, hears of none."""
    for name in names:
        package[name].__module__ = package["__name__"]
    pkgutil.iter_importer_modules.register(_Unlisted, lambda finder, prefix="": iter(()))  # type: ignore[attr-defined]
    loaders = ((machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
               (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
               (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES))
    for folder in package["__path__"]:
        if type(sys.path_importer_cache.get(folder)) is machinery.FileFinder:  # not an archive's
            sys.path_importer_cache[folder] = _Unlisted(folder, *loaders)
