"""par.Decoder: continues prompts with a bundle of a decoder (par.export_decoder). The loop is par-run's, `--generate`;
this hands it requests and reads tokens as they come."""
from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from .errors import Error
from .libraries import find
from .verify import from_text


class Decoder:
    """A decoder whose ranks, weights and caches stay until it is closed.

        with par.Decoder(bundle) as decoder:
            print(decoder.generate([[1, 2, 3], [4]], max_new_tokens=64))
            for prompt, token in decoder.stream([[1, 2, 3]], temperature=0.8, top_p=0.95, seed=1):
                ...

    bundle: a Bundle or a folder, of a file of par.export_decoder compiled with its `carry` and `dims: {seq: 1}`.
    weights, init, comm, threads, timeout: as of par.run.

    Requests are answered one after the other, and one thread uses it at a time. Raises par.Error where the bundle is
    none of a decoder's, and where a rank dies.
    """

    def __init__(self, bundle: Any, *, weights: Any = None, init: bool = False, comm: Optional[str] = None,
                 threads: Optional[int] = None, timeout: Optional[float] = None) -> None:
        flags = {"--comm": comm, "--threads": threads, "--timeout": timeout}
        command = [str(find("bin/par-run")), os.fspath(bundle), "-q", "--generate=-"]
        command += [f"{flag}={value}" for flag, value in flags.items() if value is not None]
        many = weights if isinstance(weights, (list, tuple)) else [] if weights is None else [weights]
        command += [f"--weights={os.fspath(path)}" for path in many] + (["--init"] if init else [])
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                                         text=True)
        self._answering = False
        self.times: Dict[str, float] = {}

    @property
    def pid(self) -> int:
        """The process of the only rank, or the parent of several."""
        return self._process.pid

    def __enter__(self) -> Decoder:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the ranks, after the answer that is on its way."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
        process.stdout.close()
        process.wait()
        self._errors.close()

    def stream(self, prompts: Iterable[Iterable[int]], *, max_new_tokens: int = 16, stop: Iterable[int] = (),
               temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0,
               seed: int = 0) -> Iterator[Tuple[int, int]]:
        """Yields (number of the prompt, token) as tokens come.

        prompts: lists of tokens, of any lengths and any number: a row of the batch takes the next one when its sequence
        has ended. A sequence ends after max_new_tokens, or with a token of `stop`, which is yielded too. temperature 0
        takes the largest logit; else a token is drawn, of the top_k largest (0: all), and of the largest whose
        probabilities add up to top_p. seed, number of the prompt and place in the sequence make the random number.
        Raises par.Error where a prompt does not fit into the cache. Leaving early waits, at the next request, for the
        rest of this one.
        """
        self._drain()
        request = {"prompts": [list(map(int, prompt)) for prompt in prompts], "max_new_tokens": max_new_tokens,
                   "stop": list(map(int, stop)), "temperature": temperature, "top_k": top_k, "top_p": top_p,
                   "seed": seed}
        self._send(json.dumps(request))
        while True:
            line = self._line()
            if "done" in line:
                self.times = line["done"]
                return
            yield line["prompt"], line["token"]

    def generate(self, prompts: Iterable[Iterable[int]], **options: Any) -> List[List[int]]:
        """The new tokens of each prompt, as lists; options are those of stream. `times` then holds what it took."""
        prompts = list(prompts)
        found: List[List[int]] = [[] for _ in prompts]
        for prompt, token in self.stream(prompts, **options):
            found[prompt].append(token)
        return found

    def _send(self, line):
        if self._process is None:
            raise Error("this decoder is closed", code=2)
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        self._answering = True

    def _line(self):
        text = self._process.stdout.readline()
        if not text:
            raise self._ended()
        line = json.loads(text)
        self._answering = "done" not in line and "error" not in line
        if "error" in line:
            raise from_text(line["error"], 1)
        return line

    def _drain(self):
        while self._process is not None and self._answering:
            self._line()

    def _ended(self):
        """The error with which par-run has ended."""
        code = self._process.wait()
        self._errors.seek(0)
        self._answering = False
        return from_text(self._errors.read(), code)
