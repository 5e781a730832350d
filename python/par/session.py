"""par.open: a bundle that stays open, a batch a call, in a loop of the user's own."""
from __future__ import annotations

import ctypes
import json
import math
import os
import pathlib
import tempfile
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import libraries
from .arrays import as_file
from .errors import Error
from .feeding import CODES, WORDS, Fed, empty, fed, is_torch, size_of
from .means import Means

if TYPE_CHECKING:
    from .fitting import Callback, Fit

PathOrArrays = Union[str, "os.PathLike[str]", Mapping[str, Any]]


class Scalars(Dict[str, float]):
    """The scalar outputs of a call, by name: the loss, "grad_norm", "lr", and what else the model gives as a number.

    steps: where one call of train makes several optimizer steps (`pipeline.flush_every`), those of each of them; the
    dict itself holds the last one's.
    counts: of eval, by name: how many samples, or labels that count, the scalar is the mean of. Weights that average
    several evaluations; 1 for a scalar that is no mean over samples, and none for sums and sums of several means.
    """
    steps: Tuple[Dict[str, float], ...] = ()
    counts: Mapping[str, float] = {}
    _means: Optional[Means] = None  # of eval

    @property
    def loss(self) -> float:
        """The loss; NaN where the entry has none."""
        return self.get("loss", math.nan)


class _Batch(Dict[str, Fed]):
    """The arrays of a call as the runtime reads them."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__({name: fed(value, name) for name, value in given.items()})
        self.given = dict(given)

    def is_of(self, given: Mapping[str, Any]) -> bool:
        """Whether these are the same arrays, which stay as they are until they are used."""
        return given.keys() == self.given.keys() and all(self.given[name] is value for name, value in given.items())


class Tensor:
    """An input, an output or a tensor of the state of a bundle: name, type ("f32", "i64", ...), shape."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.name: str = facts["name"]
        self.type: str = facts["type"]
        self.shape: Tuple[int, ...] = tuple(facts["shape"])
        self._facts = facts

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}{list(self.shape)}"


def open(bundle: Any, *, weights: Union[PathOrArrays, Sequence[PathOrArrays], None] = None, init: bool = False,
         resume: Optional[Union[str, "os.PathLike[str]"]] = None,
         save: Optional[Union[str, "os.PathLike[str]"]] = None, save_every: Optional[int] = None,
         keep: Optional[int] = None, comm: Optional[str] = None, threads: Optional[int] = None,
         timeout: Optional[float] = None, metrics: Optional[Union[str, "os.PathLike[str]"]] = None,
         set: Optional[Mapping[str, float]] = None, isolated: bool = False,
         cache: Optional[Union[str, "os.PathLike[str]"]] = None) -> Job:
    """Opens a bundle for a loop of one's own; use it as `with par.open("m.par", init=True) as job:`.

    bundle: a Bundle or a folder. Its ranks are started: one in this process, several as processes of their own, and
    under torchrun, mpirun or srun this process leads the rank that the launcher made it. isolated: one rank, too, is a
    process of its own, so that nothing that happens to it ends this interpreter.

    First values, one of: weights (a dict of arrays, a .safetensors file, its index, a folder of these, a save, or a
    list), init (by train.init and the seed), resume (a save, or "auto": the newest of `save`); else the model that was
    compiled. save, save_every, keep: folder of saves, steps between two that are made beside training, how many stay.
    comm, threads, timeout, metrics, set: flags of par-run (docs/plan.md 3.2). cache (default: $PAR_CACHE): a folder in
    which a bundle that predicts keeps what its next start need not compute again (docs/serving.md). Raises par.Error.
    """
    with tempfile.TemporaryDirectory(prefix="par-open-") as folder:
        files = as_file(weights, pathlib.Path(folder) / "weights.safetensors", "weights")
        many = files if isinstance(files, (list, tuple)) else [] if files is None else [files]
        values: Dict[str, Any] = {"--resume": resume, "--save": save, "--save-every": save_every, "--keep": keep,
                                  "--comm": comm, "--threads": threads, "--timeout": timeout, "--metrics": metrics,
                                  "--cache": cache}
        flags = [f"{flag}={os.fspath(value) if flag in _PATHS else value}" for flag, value in values.items()
                 if value is not None]
        flags += [f"--weights={os.fspath(one)}" for one in many] + (["--init"] if init else [])
        flags += [f"--set={key}={value!r}" for key, value in (set or {}).items()]
        return Job(os.fspath(bundle), flags, isolated=isolated, save=None if save is None else os.fspath(save))


_PATHS = ("--resume", "--save", "--metrics", "--cache")


class Job:
    """A bundle that par.open has opened. Its calls take arrays by the names of the bundle's inputs.

    batch: the samples of a call: the first dim of every input that has samples. inputs, outputs, tensors: what there
    is, by name. entries: "train" and "eval", or "predict". ranks: how many the bundle has.

    Arrays are numpy arrays, torch tensors, or others of DLPack or the buffer protocol. Dense ones in host memory are
    read where they are. One thread at a time may call; calls beside another one raise par.Error, as do all errors.
    """

    def __init__(self, bundle: str, flags: Sequence[str], *, isolated: bool = False,
                 save: Optional[str] = None) -> None:
        self._library = libraries.runtime()
        arguments = [os.fsencode(one) for one in (bundle, *flags)]
        array = (ctypes.c_char_p * len(arguments))(*arguments)
        options = libraries.OpenOptions(ctypes.sizeof(libraries.OpenOptions), array, len(arguments),
                                        libraries.ISOLATED if isolated else 0, None)
        self._handle: Optional[int] = None
        self._turn = threading.Lock()  # of a call that feeds, runs and reads results
        self._shapes: Dict[Tuple[int, ...], Any] = {}
        self._told: Optional[Mapping[str, Fed]] = None  # arrays that the runtime has for the next call
        self._left = False  # it may have arrays of a call that did not end
        self._folder = save
        self._saved = 0  # the step of the last save there
        handle = self._library.par_open(ctypes.byref(options))
        if not handle:
            raise Error("out of memory", code=1)
        if self._library.par_error(handle):
            error = self._error(handle)
            self._library.par_close(handle)
            raise error
        self._handle = handle
        facts = json.loads(self._library.par_facts(handle))
        self.batch: int = facts["batch"]
        self.ranks: int = facts["ranks"]
        self.entries: Tuple[str, ...] = tuple(facts["entries"])
        self.inputs: Dict[str, Tensor] = {one["name"]: Tensor(one) for one in facts["inputs"]}
        means = {one["name"]: one["mean"] for one in facts["outputs"] if one.get("mean")}
        self._kinds: Dict[str, str] = means or {"loss": "batch(loss)"}  # as of Means; bundles before 1.13 have none
        self.outputs: Dict[str, Tensor] = {one["name"]: Tensor(one) for one in facts["outputs"]
                                           if not self._means().hides(one["name"])}
        self.tensors: Dict[str, Tensor] = {one["name"]: Tensor(one) for one in facts["tensors"]}
        self._calls: int = facts["calls"]

    # -- calls ---------------------------------------------------------------------------------------------------------

    def train(self, batch: Optional[Mapping[str, Any]] = None, *, next: Optional[Mapping[str, Any]] = None,
              **arrays: Any) -> Scalars:
        """One training step on a batch: forward, backward, update. Returns its loss and other scalar outputs.

        The arrays are those of `inputs`, by name, as keywords or as a dict; each has `batch` rows. Which rows go to
        which microbatch and rank, the bundle says. Raises par.Error: code 1 or 2 for arrays that do not fit (nothing
        has been trained then), 5 where the loss is not finite, 4 where a rank died.

        next: the batch of the call that follows, if it is known, as a dict. Ranks read it beside the compute of this
        step, so its arrays must stay as they are until they are trained. Results are the same; the call that follows is
        made as without it, and may also be made with other arrays.
        """
        return self._run("train", batch, arrays, next)

    def eval(self, batch: Optional[Mapping[str, Any]] = None, **arrays: Any) -> Scalars:
        """The loss and other scalar outputs, as in evaluation mode; nothing is trained.

        Arguments as of train, but of any number of rows: they are evaluated `batch` at a time. The scalars are those of
        one batch of all rows: means over them, or over all labels that count; sums; sums of such means. Rows that
        fill up the last batch do not count. Raises par.Error, also where rows are left over and the loss is none of
        these (it compares the samples of a batch).
        """
        whole, rows, count, _ = self._given(batch, arrays)
        self._begin()
        try:
            if count == self.batch:
                self._run_fed("eval", whole)
                return self._evaluated()
            self._check_samples(whole, rows)
            return self._eval_parts(whole, rows, count)
        finally:
            self._turn.release()

    def predict(self, batch: Optional[Mapping[str, Any]] = None, **arrays: Any) -> Dict[str, Any]:
        """The outputs of a bundle that was compiled without `train`, whole, by name.

        Arguments as of train, but of any number of rows: they are predicted `batch` at a time, and the first rows fill
        up the last batch. Results are new arrays: of PyTorch where an input is, else of numpy. Raises par.Error.
        """
        if "predict" not in self.entries:
            raise Error('this bundle trains; of the same model par.compile(model, plan, set={"train": None}, '
                        'out="serve.par") predicts, with weights=job.state() or a save', code=2)
        whole, rows, count, torch = self._given(batch, arrays)
        self._begin()
        try:
            if count == self.batch:
                self._run_fed("predict", whole)
                return {name: self._result(name, torch) for name in self._results("predict")}
            self._check_samples(whole, rows)
            return self._predict_parts(whole, rows, count, torch)
        finally:
            self._turn.release()

    def set(self, **values: float) -> None:
        """Sets hyperparameters for the steps that follow: lr, clip. A rate that is set replaces the plan's schedule:
        set it before each step to follow a scheduler of your own."""
        for name, value in values.items():
            self._check(self._library.par_set(self._live(), name.encode(), float(value)))

    def get(self, name: str) -> float:
        """A hyperparameter in the next step: get("lr") is the rate of the plan's schedule there."""
        value = ctypes.c_double()
        self._check(self._library.par_get(self._live(), name.encode(), ctypes.byref(value)))
        return value.value

    def state(self, names: Optional[Iterable[str]] = None, *, torch: bool = False) -> Dict[str, Any]:
        """Tensors of the state by name, whole, gathered from all ranks: weights, buffers, the optimizer's states, or
        those of `names`. New arrays of numpy, or with `torch` of PyTorch."""
        result = {}
        for name in self.tensors if names is None else names:
            about = self.tensors.get(name)
            value, address = empty(about.type, about.shape, torch) if about else (None, 0)
            size = size_of(about.type) * math.prod(about.shape) if about else 0
            self._check(self._library.par_read(self._live(), name.encode(), address, size))
            result[name] = value
        return result

    def load(self, source: Union[PathOrArrays, Sequence[Union[str, "os.PathLike[str]"]]]) -> None:
        """New values for tensors: a dict of arrays by the names of `tensors` (any of them), or files of weights as
        par.open takes them (all weights). The optimizer's state and the step stay; job.resume takes a save whole."""
        if isinstance(source, Mapping):
            for name, value in source.items():
                one = fed(value, name)
                self._check(self._library.par_write(self._live(), name.encode(), one.address, CODES[one.word],
                                                    self._shape(one.shape), len(one.shape)))
            return
        paths = [source] if isinstance(source, (str, os.PathLike)) else list(source)
        array = (ctypes.c_char_p * len(paths))(*[os.fsencode(path) for path in paths])
        self._check(self._library.par_load(self._live(), array, len(paths)))

    def resume(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Goes on from a save, of a session or of par-run: weights, the optimizer's state, and the step."""
        self._check(self._library.par_resume(self._live(), os.fsencode(path)))

    def save(self, folder: Optional[Union[str, "os.PathLike[str]"]] = None, *, keep: int = 2) -> str:
        """Saves the state under `folder` (that of par.open(save=...) if it is not named) and returns the path of the
        save, from which job.resume, par.run and par-run --resume go on under any plan. The `keep` newest saves of a
        folder stay, 0: all."""
        path = os.fsencode(folder) if folder is not None else None
        self._check(self._library.par_save(self._live(), path, keep))
        saved = os.fsdecode(self._library.par_text(self._live()))
        if folder is None:
            self._saved = self.step
        return saved

    def _open_folder(self, folder: Union[str, "os.PathLike[str]"], keep: int) -> None:
        """Takes a folder for later saves, and refuses one that they could not go to."""
        self._check(self._library.par_open_folder(self._live(), os.fsencode(folder), keep))

    def export(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the weights to a .safetensors file, or the model with them to an .onnx file."""
        self._check(self._library.par_export(self._live(), os.fsencode(path)))

    @property
    def step(self) -> int:
        """Optimizer steps done, those before a save that the job went on from included."""
        position = libraries.Position()
        self._check(self._library.par_position(self._live(), ctypes.byref(position)))
        return int(position.step)

    @property
    def closed(self) -> bool:
        """Whether close() has been called."""
        return self._handle is None

    def events(self) -> List[str]:
        """The lines for the user since the last time: warnings, saves that have begun."""
        lines = []
        while (line := self._library.par_event(self._live())) is not None:
            lines.append(line.decode(errors="replace"))
        return lines

    def fit(self, batches: Iterable[Any], *, steps: Optional[int] = None, epochs: Optional[int] = None,
            resumed: bool = False, inputs: Optional[Sequence[str]] = None, eval: Optional[Iterable[Any]] = None,
            eval_every: Optional[int] = None, callbacks: Sequence[Union[Callback, Callable[..., Any]]] = (),
            prefetch: int = 2, progress: bool = True, log_every: Optional[int] = None) -> Fit:
        """Trains over batches, and evaluates; see par.fitting.fit."""
        from .fitting import fit
        return fit(self, batches, steps=steps, epochs=epochs, resumed=resumed, inputs=inputs, eval=eval,
                   eval_every=eval_every, callbacks=callbacks, prefetch=prefetch, progress=progress,
                   log_every=log_every)

    def close(self) -> None:
        """Ends the ranks; a save that is being written is made whole first. A second call does nothing."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        code = self._library.par_close(handle)
        if code == libraries.BUSY:
            self._handle = handle
            raise self._busy()
        self._told = None

    def __enter__(self) -> Job:
        self._live()
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        """Closes the job. After Ctrl-C it saves first, where par.open(save=...) named a folder."""
        if kind is not None and issubclass(kind, KeyboardInterrupt) and self._folder and not self.closed \
                and self.step != self._saved:
            self.save()
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    # -- how -----------------------------------------------------------------------------------------------------------

    def _run(self, entry: str, batch: Optional[Mapping[str, Any]], arrays: Mapping[str, Any],
             following: Optional[Mapping[str, Any]]) -> Scalars:
        given = {**batch, **arrays} if batch else arrays
        self._begin()
        try:
            told = self._told
            now = told if isinstance(told, _Batch) and told.is_of(given) else _Batch(given)
            self._run_fed(entry, now, self._next(following))
            return self._scalars()
        finally:
            self._turn.release()

    @staticmethod
    def _next(following: Optional[Mapping[str, Any]]) -> Optional[_Batch]:
        """The batch of the next call; nothing where it has a mistake, which that call tells."""
        if following is None:
            return None
        if not isinstance(following, Mapping):
            raise Error(f"next is {type(following).__name__}; give a dict of arrays by the names of the inputs, and an "
                        'input of the name "next" in a dict, too', code=2)
        try:
            return _Batch(following)
        except Error:
            return None

    def _given(self, batch: Optional[Mapping[str, Any]],
               arrays: Mapping[str, Any]) -> Tuple[Dict[str, Fed], Dict[str, int], int, bool]:
        """Arrays of any number of rows; the rows of those that have some, how many, and whether one is of PyTorch."""
        given = {**(batch or {}), **arrays}
        whole = {name: fed(value, name) for name, value in given.items()}
        rows = {name: one.shape[0] for name, one in whole.items()
                if name in self.inputs and self.inputs[name]._facts["batched"] and one.shape}
        torch = any(is_torch(value) for value in given.values())
        count = next(iter(rows.values()), self.batch)
        if any(other != count for other in rows.values()) or count == 0:
            raise Error(f"the inputs have different numbers of rows: {rows}" if count else "the inputs have no rows",
                        code=2)
        return whole, rows, count, torch

    def _begin(self) -> None:
        if not self._turn.acquire(blocking=False):
            raise self._busy()

    def _feed(self, arrays: Mapping[str, Fed]) -> None:
        self._told = None  # the runtime forgets them
        for name, one in arrays.items():
            self._check(self._library.par_feed(self._live(), name.encode(), one.address, CODES[one.word],
                                               self._shape(one.shape), len(one.shape)))

    def _run_fed(self, entry: str, arrays: Mapping[str, Fed], following: Optional[Mapping[str, Fed]] = None) -> None:
        handle, library = self._live(), self._library
        told, self._told = self._told, None
        left, self._left = self._left or not arrays, True
        if arrays is not told:
            if left:
                self._check(library.par_forget(handle))
            self._feed(arrays)
        for name, one in (following or {}).items():
            if library.par_feed_ahead(handle, name.encode(), one.address, CODES[one.word], self._shape(one.shape),
                                      len(one.shape)):
                following = None  # the next call tells the mistake
                break
        self._check(library.par_run(handle, entry.encode()))
        self._told, self._left = following or None, False

    def _check_samples(self, whole: Mapping[str, Fed], rows: Mapping[str, int]) -> None:
        """Refuses arrays whose samples have another shape as they were given, not as parts of a batch."""
        for name in rows:
            if whole[name].shape[1:] != self.inputs[name].shape[1:]:
                self._feed({name: whole[name]})

    def _predict_parts(self, whole: Mapping[str, Fed], rows: Mapping[str, int], count: int,
                       torch: bool) -> Dict[str, Any]:
        """Predicts batch by batch; the first rows fill up the last one."""
        outputs: Dict[str, List[Any]] = {name: [] for name in self._results("predict")}
        following: Optional[Mapping[str, Fed]] = None
        for first in range(0, count, self.batch):
            part, following = following or self._part(whole, rows, first, count), None
            if first + self.batch < count:
                following = self._part(whole, rows, first + self.batch, count)
            self._run_fed("predict", part, following)
            for name in outputs:
                outputs[name].append(self._result(name, torch))
        return {name: _joined(parts, self.outputs[name]._facts["batch_dim"], count, torch)
                for name, parts in outputs.items()}

    def _part(self, whole: Mapping[str, Fed], rows: Mapping[str, int], first: int,
              count: int) -> Mapping[str, Fed]:
        return {name: _rows(one, first, self.batch, count) if name in rows else one for name, one in whole.items()}

    def _eval_parts(self, whole: Mapping[str, Fed], rows: Mapping[str, int], count: int) -> Scalars:
        """Evaluates batch by batch. The last rows fill up a batch with the last of them; its share is then taken off,
        by a batch of nothing but that row."""
        left = count % self.batch
        means = self._means()
        if left and not means.adds_up("loss"):
            raise Error(f"{count} rows are no whole batches of {self.batch}, and the loss is no mean over samples, of "
                        "which others could fill up a batch; leave the last rows out", code=2)

        def add(first: int, size: int, share: float) -> None:
            self._run_fed("eval", {name: _filled(one, first, size, self.batch) if name in rows else one
                                   for name, one in whole.items()})
            means.add(self._found()[-1], share, size == self.batch)

        for first in range(0, count - left, self.batch):
            add(first, self.batch, 1.0)
        if left:
            add(count - left, left, 1.0)
            add(count - 1, 1, -(self.batch - left) / self.batch)
        result = Scalars(means.values())
        result.counts, result._means = means.weights(), means
        return result

    def _means(self) -> Means:
        return Means(self._kinds, self.batch)

    def _results(self, entry: str) -> List[str]:
        return [name for name, one in self.outputs.items() if entry in one._facts["entries"]]

    def _result(self, name: str, torch: bool) -> Any:
        array = libraries.Array()
        self._check(self._library.par_result(self._live(), name.encode(), ctypes.byref(array)))
        shape, word = array.shape[:array.dims], WORDS[array.type]
        value, address = empty(word, shape, torch)
        ctypes.memmove(address, array.data, math.prod(shape) * size_of(word))
        return value

    def _found(self) -> List[Dict[str, float]]:
        """The scalars of each call of the last run, also those that are there for others."""
        calls = []
        count = ctypes.c_size_t()
        for call in range(self._calls):
            found = self._library.par_scalars(self._live(), call, ctypes.byref(count))
            calls.append({one.name.decode(): one.value for one in found[:count.value]})
        return calls if calls[-1] else calls[:1]

    def _scalars(self) -> Scalars:
        calls, means = self._found(), self._means()
        result = Scalars({name: value for name, value in calls[-1].items() if not means.hides(name)})
        result.steps = tuple(calls)
        return result

    def _evaluated(self) -> Scalars:
        result, means = self._scalars(), self._means()
        means.add(self._found()[-1])
        result.counts, result._means = means.weights(), means
        return result

    def _shape(self, shape: Tuple[int, ...]) -> Any:
        known = self._shapes.get(shape)
        if known is None:
            known = self._shapes[shape] = (ctypes.c_int64 * len(shape))(*shape)
        return known

    def _live(self) -> int:
        if self._handle is None:
            raise Error("the job is closed; open the bundle again with par.open", code=2)
        return self._handle

    def _check(self, code: int) -> None:
        if code == libraries.BUSY:
            raise self._busy()
        if code:
            raise self._error(self._live())

    @staticmethod
    def _busy() -> Error:
        return Error("another thread is in a call of this job; one thread at a time may call: a lock around the calls, "
                     "or a job for each thread", code=2)

    def _error(self, handle: int) -> Error:
        found = self._library.par_error(handle)
        if not found:
            return Error("the call failed", code=1)
        said = found.contents
        notes = said.notes.decode(errors="replace").splitlines()
        place = said.place.decode(errors="replace")
        return Error(said.message.decode(errors="replace"), code=said.code, notes=notes,
                     file=place if place not in ("", "par-run") else None)


def _filled(one: Fed, first: int, size: int, batch: int) -> Fed:
    """`size` rows of an array from `first` on, and the last of them again until there are `batch`."""
    row = size_of(one.word) * math.prod(one.shape[1:])
    shape = (batch, *one.shape[1:])
    if size == batch:
        return Fed(one.address + first * row, one.word, shape, one)
    memory = (ctypes.c_char * max(1, batch * row))()
    for place in range(batch):
        ctypes.memmove(ctypes.addressof(memory) + place * row, one.address + (first + min(place, size - 1)) * row, row)
    return Fed(ctypes.addressof(memory), one.word, shape, memory)


def _rows(one: Fed, first: int, batch: int, count: int) -> Fed:
    """Rows of an array from `first` on; the first ones follow the last one."""
    row = size_of(one.word) * math.prod(one.shape[1:])
    shape = (batch, *one.shape[1:])
    if first + batch <= count:
        return Fed(one.address + first * row, one.word, shape, one)
    memory = (ctypes.c_char * max(1, batch * row))()
    for place in range(batch):
        ctypes.memmove(ctypes.addressof(memory) + place * row, one.address + (first + place) % count * row, row)
    return Fed(ctypes.addressof(memory), one.word, shape, memory)


def _joined(parts: List[Any], dim: Optional[int], count: int, torch: bool) -> Any:
    """Results of batches as one array: along the dim that is the batch, or stacked where a result has none."""
    if torch:
        import torch as library
        return library.stack(parts) if dim is None else library.cat(parts, dim).narrow(dim, 0, count)
    try:
        import numpy
    except ImportError:
        raise Error("results of several batches need numpy; predict as many rows as the bundle's batch", code=2) \
            from None
    if dim is None:
        return numpy.stack(parts)
    return numpy.concatenate(parts, dim).take(range(count), dim)
