"""Metrics in files: event files of TensorBoard, and tables."""
from __future__ import annotations

import csv
import json
import os
import pathlib
import threading
import time
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple, Union

from .errors import Error
from .fitting import Callback

if TYPE_CHECKING:
    from .session import Job, Scalars

Path = Union[str, "os.PathLike[str]"]


class TensorBoard(Callback):
    """Writes the scalars of steps ("train/loss") and evaluations ("eval/loss") as event files into a folder, for
    `tensorboard --logdir`. Needs the package tensorboard: pip install "par[tensorboard]".

    A callback of job.fit; in a loop of one's own, call board.on_step(job, job.step, job.train(...)), and close() at the
    end.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as missing:
            raise Error(f"event files of TensorBoard need the package tensorboard ({missing})", code=2,
                        notes=['pip install "par[tensorboard]", or pip install tensorboard; a table needs none: '
                               'csv:FILE']) from None
        self._event, self._summary = Event, Summary
        self._writer = EventFileWriter(os.fspath(folder))

    def on_step(self, job: Optional[Job], step: int, scalars: Mapping[str, float]) -> Optional[bool]:
        self.write(step, {f"train/{name}": value for name, value in scalars.items()})
        return None

    def on_eval(self, job: Optional[Job], step: int, scalars: Mapping[str, float]) -> Optional[bool]:
        self.write(step, {f"eval/{name}": value for name, value in scalars.items()})
        self._writer.flush()
        return None

    def on_end(self, job: Optional[Job]) -> None:
        self.close()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Scalars of a step, by tag."""
        many = [self._summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._writer.add_event(self._event(wall_time=time.time(), step=step, summary=self._summary(value=many)))

    def close(self) -> None:
        """Writes what is still in memory. A second call does nothing."""
        self._writer.close()


class CsvFile(Callback):
    """Writes the scalars of steps and evaluations into a table: a column each, "eval_loss" and the like for those of
    evaluations. The columns are those of the first step and the first evaluation; the file is written at the end of
    each evaluation, and at the end."""

    def __init__(self, file: Path) -> None:
        self._file = pathlib.Path(file)
        self._rows: List[Dict[str, float]] = []
        self._columns: Dict[str, None] = {"step": None}
        self._write()

    def on_step(self, job: Job, step: int, scalars: Scalars) -> Optional[bool]:
        self._add(step, scalars)
        return None

    def on_eval(self, job: Job, step: int, scalars: Scalars) -> Optional[bool]:
        self._add(step, {f"eval_{name}": value for name, value in scalars.items()})
        self._write()
        return None

    def on_end(self, job: Job) -> None:
        self._write()

    def _add(self, step: int, scalars: Mapping[str, float]) -> None:
        self._columns.update(dict.fromkeys(scalars))
        self._rows.append({"step": step, **scalars})

    def _write(self) -> None:
        with self._file.open("w", newline="") as out:
            table = csv.DictWriter(out, list(self._columns), restval="")
            table.writeheader()
            table.writerows(self._rows)


def split(log: str) -> Tuple[str, str]:
    """("csv", FILE) or ("tensorboard", FOLDER)."""
    kind, colon, place = os.fspath(log).partition(":")
    if kind not in ("csv", "tensorboard") or not colon or not place:
        raise Error(f'log is "{log}", expected "csv:FILE" or "tensorboard:FOLDER"', code=2)
    return kind, place


_OF_STEPS = ("step", "tokens")


class Follower:
    """Reads the lines of par-run's --metrics while they are written, and hands them to a board."""

    def __init__(self, file: pathlib.Path, board: TensorBoard) -> None:
        self._file, self._board = file, board
        self._read = file.stat().st_size if file.is_file() else 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="par-log", daemon=True)

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        self._thread.join()
        self._take()
        self._board.close()

    def _follow(self) -> None:
        while not self._ended.wait(0.5):
            self._take()

    def _take(self) -> None:
        """All lines that are whole."""
        if not self._file.is_file():
            return
        with self._file.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        whole = data[:data.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            values = {name: value for name, value in json.loads(line).items() if value is not None}
            step = values["step"]
            evals = {name[len("eval_"):]: value for name, value in values.items() if name.startswith("eval_")}
            if evals:
                self._board.on_eval(None, step, evals)
            else:
                self._board.on_step(None, step, {name: value for name, value in values.items()
                                                 if name not in _OF_STEPS})
