"""job.fit: training over whatever gives batches, with evaluation and callbacks."""
from __future__ import annotations

import dataclasses
import math
import os
import queue
import sys
import threading
from typing import (TYPE_CHECKING, Any, Callable, Dict, Generator, Iterable, Iterator, List, Mapping, Optional,
                    Sequence, Union)

from .bars import Bar
from .errors import Error
from .means import Means
from .session import Scalars

if TYPE_CHECKING:
    from .session import Job


class Callback:
    """Hears of the steps of a fit. A method that returns True ends the training after that step; others return None."""

    def on_begin(self, job: Job) -> None:
        """Once, before the first step. An error that it raises ends the fit there."""

    def on_step(self, job: Job, step: int, scalars: Scalars) -> Optional[bool]:
        """After each step, with its scalar outputs."""
        return None

    def on_eval(self, job: Job, step: int, scalars: Scalars) -> Optional[bool]:
        """After each evaluation, with the means of its scalar outputs."""
        return None

    def on_end(self, job: Job) -> None:
        """Once, when the fit has ended, also by an error."""


class EarlyStopping(Callback):
    """Ends the training when `metric` of the evaluations has not fallen by more than `least` for `patience` of them;
    with `highest`, as of an accuracy, when it has not risen."""

    def __init__(self, patience: int = 3, metric: str = "loss", least: float = 0.0, highest: bool = False) -> None:
        self.patience, self.metric, self.least, self.sign = patience, metric, least, -1.0 if highest else 1.0
        self.best, self.waited = math.inf, 0

    def on_eval(self, job: Job, step: int, scalars: Scalars) -> Optional[bool]:
        value = self.sign * _metric(scalars, self.metric)
        if value < self.best - self.least:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


class BestCheckpoint(Callback):
    """Saves into `folder` after each evaluation whose `metric` is the lowest so far, or with `highest` the highest;
    `path` is the newest such save, and `value` the metric there. A folder that holds the saves of another run is
    refused before the first step."""

    def __init__(self, folder: Union[str, "os.PathLike[str]"], metric: str = "loss", highest: bool = False) -> None:
        self.folder, self.metric, self.sign = folder, metric, -1.0 if highest else 1.0
        self.best, self.path, self.value = math.inf, "", math.nan

    def on_begin(self, job: Job) -> None:
        job._open_folder(self.folder, keep=1)

    def on_eval(self, job: Job, step: int, scalars: Scalars) -> Optional[bool]:
        found = _metric(scalars, self.metric)
        if self.sign * found < self.best:
            self.best, self.value = self.sign * found, found
            self.path = job.save(self.folder, keep=1)
        return None


@dataclasses.dataclass
class Fit:
    """Result of a fit. losses: of its steps; evals: the means of each evaluation's scalars, with "step"; stopped: why
    it ended: "steps", "epochs", "data" (an iterator was exhausted) or "callback"."""
    losses: List[float] = dataclasses.field(default_factory=list)
    evals: List[Dict[str, float]] = dataclasses.field(default_factory=list)
    stopped: str = ""


def fit(job: Job, batches: Iterable[Any], *, steps: Optional[int] = None, epochs: Optional[int] = None,
        resumed: bool = False, inputs: Optional[Sequence[str]] = None, eval: Optional[Iterable[Any]] = None,
        eval_every: Optional[int] = None, callbacks: Sequence[Union[Callback, Callable[..., Any]]] = (),
        prefetch: int = 2, progress: bool = True, log_every: Optional[int] = None) -> Fit:
    """Trains over batches until `steps` steps of this call, `epochs` passes, or the end of the data.

    batches: a DataLoader, an iterator, a generator or any iterable of batches: dicts of arrays by the names of the
    inputs, or tuples in the order of `inputs`. A thread fetches the next `prefetch` batches beside compute (0: none,
    in this thread). Each batch has `job.batch` rows: a DataLoader needs batch_size=job.batch, drop_last=True.

    Before each pass, set_epoch(number of the pass) is called on what has it: the batches, their dataset, sampler or
    batch_sampler. Draw shuffles and augmentation from that number, and a pass can be gone on with later.
    resumed: the job has gone on from a save of a fit over the same batches: `steps` and `epochs` count from that fit's
    begin, and the batches that were trained before the save are left out. Whole passes are not drawn, where the batches
    have a len(); those of the pass that goes on are drawn and dropped.

    eval: batches to evaluate every `eval_every` steps, or after each pass; it must be iterable more than once. They may
    have any number of rows. The scalars are means over all samples, or over all labels that count.
    callbacks: Callback objects, or functions that are called as f(job, step, scalars) after each step. progress: on
    standard error a bar, or where that is no terminal a line every `log_every` steps (default: about ten in all, or one
    in ten seconds). Ctrl-C saves first, where par.open(save=...) named a folder, and is raised again.
    """
    passes = 1 if steps is None and epochs is None and iter(batches) is not batches else epochs
    done = job.step // job._calls if resumed else 0
    left = None if steps is None else max(0, steps - done)
    known = left if left is not None else max(0, (passes or 0) * _length(batches) - done) or None
    loop = _Loop(job, inputs, eval, list(callbacks), Bar(known, log_every) if progress else None, done)
    source = _passes(batches, passes, done)
    fetched = _Ahead(source, prefetch) if prefetch > 0 else source
    try:
        for callback in callbacks:
            if isinstance(callback, Callback):
                callback.on_begin(job)
        fitted = loop.run(fetched, left, eval_every)
        if fitted.stopped == "data" and epochs is not None and iter(batches) is not batches:
            fitted.stopped = "epochs"
        return fitted
    except KeyboardInterrupt:
        if job._folder and job.step != job._saved:
            print(f"interrupted; saved {job.save()}", file=sys.stderr)
        raise
    finally:
        fetched.close()
        for callback in callbacks:
            if isinstance(callback, Callback):
                callback.on_end(job)


class _End:
    """Stands between two passes."""


def _passes(batches: Iterable[Any], epochs: Optional[int], skipped: int) -> Generator[Any, None, None]:
    """The batches of all passes but the first `skipped` ones, with an _End after each pass. An iterator gives one."""
    length = _length(batches) if skipped else 0
    epoch = skipped // length if length else 0
    skipped -= epoch * length
    while epochs is None or epoch < epochs:
        _set_epoch(batches, epoch)
        empty, left_out = True, False
        for batch in batches:
            empty, left_out = False, skipped > 0
            if skipped == 0:
                yield batch
            else:
                skipped -= 1
        epoch += 1
        if not left_out:  # a pass that was left out whole has no end, either
            yield _End()
        if empty or iter(batches) is batches:
            return


def _length(batches: Any) -> int:
    """The number of batches of a pass; 0 where it is not known, as of a DataLoader over an iterable data set."""
    try:
        return len(batches)
    except (TypeError, NotImplementedError, RuntimeError, ValueError):
        return 0


def _set_epoch(batches: Any, epoch: int) -> None:
    """As DistributedSampler, and the iterable datasets of Hugging Face, want it."""
    for part in (batches, *(getattr(batches, name, None) for name in ("dataset", "sampler", "batch_sampler"))):
        if callable(tell := getattr(part, "set_epoch", None)):
            tell(epoch)


class _Failed:
    """The error of a fetching thread."""

    def __init__(self, reason: BaseException) -> None:
        self.reason = reason


class _Ahead:
    """The same batches, fetched by a thread that is `count` ahead. Its errors are raised where the batches are used."""

    def __init__(self, source: Iterator[Any], count: int) -> None:
        self.source = source
        self.ready: "queue.Queue[Any]" = queue.Queue(count)
        self.ended, self.done = threading.Event(), object()
        self.is_over = False
        self.thread = threading.Thread(target=self._fetch, name="par-fetch", daemon=True)
        self.thread.start()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        value = self.done if self.is_over else self.ready.get()
        if value is self.done:
            self.is_over = True
            raise StopIteration
        if isinstance(value, _Failed):
            raise value.reason
        return value

    def peek(self) -> Any:
        """The next batch if it has been fetched; else None. Nothing waits for it."""
        with self.ready.mutex:  # it stays there: the thread fetches no more than `prefetch` beside it
            value = self.ready.queue[0] if self.ready.queue else None
        return None if value is self.done or isinstance(value, (_Failed, _End)) else value

    def close(self) -> None:
        self.ended.set()
        self.thread.join(timeout=5)

    def _put(self, value: Any) -> bool:
        while not self.ended.is_set():
            try:
                self.ready.put(value, timeout=0.1)
                return True
            except queue.Full:
                pass
        return False

    def _fetch(self) -> None:
        try:
            for value in self.source:
                if not self._put(value):
                    return
            self._put(self.done)
        except BaseException as reason:  # raised where the batches are used
            self._put(_Failed(reason))


class _Loop:
    """The steps of a fit."""

    def __init__(self, job: Job, inputs: Optional[Sequence[str]], evals: Optional[Iterable[Any]],
                 callbacks: List[Union[Callback, Callable[..., Any]]], bar: Optional[Bar], before: int) -> None:
        self.job, self.inputs, self.evals, self.callbacks, self.bar = job, inputs, evals, callbacks, bar
        self.before = before  # steps of a fit that this one goes on with
        self.result = Fit()

    def run(self, batches: Iterator[Any], steps: Optional[int], eval_every: Optional[int]) -> Fit:
        for batch in batches:
            if steps is not None and len(self.result.losses) >= steps:
                return self.end("steps")
            if isinstance(batch, _End):
                stops = self.evals is not None and eval_every is None and self.evaluate()
            else:
                done = self.before + len(self.result.losses) + 1
                evaluates = self.evals is not None and bool(eval_every) and done % (eval_every or 1) == 0
                is_last = steps is not None and len(self.result.losses) + 1 >= steps
                stops = self.step(batch, None if evaluates or is_last else self.following(batches))
                if evaluates:
                    stops = self.evaluate() or stops
            if stops:
                return self.end("callback")
        return self.end("steps" if steps is not None and len(self.result.losses) >= steps else "data")

    def end(self, why: str) -> Fit:
        self.result.stopped = why
        if self.bar:
            self.bar.end()
        return self.result

    def following(self, batches: Iterator[Any]) -> Optional[Mapping[str, Any]]:
        """The batch of the next step, where a thread has fetched it. Its mistakes are told in that step."""
        batch = batches.peek() if isinstance(batches, _Ahead) else None
        try:
            return None if batch is None else self.named(batch)
        except Error:
            return None

    def step(self, batch: Any, following: Optional[Mapping[str, Any]]) -> bool:
        scalars = self.job.train(self.named(batch), next=following)
        self.result.losses.append(scalars.loss)
        step = self.job.step
        if self.bar:
            self.bar.step(step, scalars)
        said = [callback.on_step(self.job, step, scalars) if isinstance(callback, Callback)
                else callback(self.job, step, scalars) for callback in self.callbacks]
        return any(one is True for one in said)

    def evaluate(self) -> bool:
        means = Means({}, self.job.batch)
        for batch in self.evals or ():
            part = self.job.eval(self.named(batch))
            if part._means:
                means.merge(part._means)
        if not means.values():
            raise Error("eval gave no batches: an iterator is exhausted after its first pass; give a list or a "
                        "DataLoader", code=2)
        scalars = Scalars(means.values())
        scalars.counts = means.weights()
        step = self.job.step
        self.result.evals.append({"step": step, **scalars})
        if self.bar:
            self.bar.evaluated(step, scalars)
        said = [callback.on_eval(self.job, step, scalars) for callback in self.callbacks
                if isinstance(callback, Callback)]
        return any(one is True for one in said)

    def named(self, batch: Any) -> Mapping[str, Any]:
        if isinstance(batch, Mapping):
            return batch
        if not isinstance(batch, (tuple, list)):
            raise Error(f"a batch is {type(batch).__name__}; give dicts of arrays by the names of the inputs, or "
                        "tuples and inputs=(...)", code=2)
        if self.inputs is None or len(self.inputs) != len(batch):
            raise Error(f"a batch is a tuple of {len(batch)} arrays; say their names, such as "
                        f"inputs={tuple(self.job.inputs)}", code=2)
        return dict(zip(self.inputs, batch))


def _metric(scalars: Scalars, name: str) -> float:
    if name not in scalars:
        raise Error(f'the evaluation gives no "{name}"; it gives {", ".join(scalars) or "nothing"}', code=2)
    return scalars[name]
