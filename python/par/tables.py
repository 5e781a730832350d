"""Arrow tables of Hugging Face `datasets` as arrays, which par.run and par.predict hand to par-run. Needs pyarrow."""
import json
import os
import pathlib
import warnings
from typing import Any

from .errors import Error


def is_table(data: Any) -> bool:
    """Whether `data` is a Dataset in memory, an .arrow file, or a folder that save_to_disk wrote."""
    if isinstance(data, (str, os.PathLike)):
        path = pathlib.Path(data)
        return path.suffix == ".arrow" or any((path / name).is_file() for name in ("state.json", "dataset_dict.json"))
    return hasattr(data, "column_names") and hasattr(data, "with_format")


def columns(data: Any) -> dict:
    """The columns of numbers as numpy arrays with the rows first; lists must be of one length in all rows.

    Columns of anything else (texts, dicts) are left out with a warning. Raises par.Error that names the column.
    """
    if isinstance(data, (str, os.PathLike)):
        place, table = os.fspath(data), _read(pathlib.Path(data))
    else:
        place, table = "the data set", data.with_format("arrow")[:]
    arrays, left_out = {}, []
    for name in table.column_names:
        array = _array(table.column(name), f'{place}: column "{name}"')
        if array is None:
            left_out.append(f"{name} ({table.column(name).type})")
        else:
            arrays[name] = array
    if left_out:
        warnings.warn(f"{place}: columns that hold no numbers are left out: {', '.join(left_out)}", stacklevel=4)
    if not arrays:
        raise Error("no column holds numbers; tokenize the texts first (Dataset.map)", file=place, code=1)
    return arrays


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise Error("tables of arrow are read by pyarrow, which is not installed: pip install pyarrow",
                    code=2) from None
    return pyarrow


def _read(path: pathlib.Path) -> Any:
    """The table of a file, or of a folder's files in their order, mapped."""
    pyarrow = _pyarrow()
    try:
        if (path / "dataset_dict.json").is_file():
            splits = json.loads((path / "dataset_dict.json").read_text())["splits"]
            raise Error(f"holds the splits {', '.join(splits)}: name one, {path / splits[0]}", file=str(path), code=1)
        files = [path]
        if path.is_dir():
            state = json.loads((path / "state.json").read_text())
            files = [path / part["filename"] for part in state["_data_files"]]
            if state.get("_indices_data_files"):
                raise Error("is a selection of rows: Dataset.flatten_indices() before save_to_disk makes it a table",
                            file=str(path), code=1)
        return pyarrow.concat_tables([_open(pyarrow, file) for file in files])
    except (OSError, KeyError, TypeError, ValueError, pyarrow.ArrowException) as error:
        raise Error(f"cannot be read as a data set: {error}", file=str(path), code=1) from None


def _open(pyarrow: Any, file: pathlib.Path) -> Any:
    """`datasets` writes streams; others write files."""
    source = pyarrow.memory_map(str(file))
    try:
        return pyarrow.ipc.open_stream(source).read_all()
    except pyarrow.ArrowInvalid:
        source.seek(0)
        return pyarrow.ipc.open_file(source).read_all()


def _array(column: Any, what: str) -> Any:
    """A column of numbers, or of equally long (nested) lists of them; None of anything else."""
    pyarrow = _pyarrow()
    shape = [len(column)]
    if column.null_count:
        raise Error(f"{what} has {column.null_count} rows without a value", code=1)
    values = column.combine_chunks()
    if isinstance(values, pyarrow.ChunkedArray):
        values = pyarrow.concat_arrays(values.chunks) if values.num_chunks else pyarrow.array([], values.type)
    if isinstance(values, pyarrow.ExtensionArray):  # datasets' Array2D and the like
        values = values.storage
    while _is_list(pyarrow, values.type):
        counts = set(values.value_lengths().to_pylist()) if len(values) else {0}
        if len(counts) > 1:
            raise Error(f"{what} has lists of {min(counts)} to {max(counts)} elements; pad them to one length", code=1)
        shape.append(counts.pop())
        values = values.flatten()
        if values.null_count:
            raise Error(f"{what} has lists with {values.null_count} elements that have no value", code=1)
    kind = values.type
    if not (pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_boolean(kind)):
        return None
    return values.to_numpy(zero_copy_only=False).reshape(shape)


def _is_list(pyarrow: Any, kind: Any) -> bool:
    types = pyarrow.types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
