"""How far a fit is: a bar on a terminal, a line now and then elsewhere."""
from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .session import Scalars

CELLS = 20
QUIET_SECONDS = 10.0  # between two lines of a fit of unknown length


class Bar:
    """On a terminal the last line of standard error, drawn at most ten times a second, as wide as the terminal is then,
    without colours. Elsewhere, and on a dumb terminal, a line every `every` steps."""

    def __init__(self, steps: Optional[int], every: Optional[int] = None) -> None:
        self.steps, self.every = steps, every or (max(1, steps // 10) if steps else None)
        self.done, self.drawn, self.said = 0, 0.0, time.monotonic()
        self.shown = 0  # the step of the last line
        self.began = self.second = time.monotonic()
        self.line = ""
        self.clever = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def step(self, step: int, scalars: Scalars) -> None:
        self.done += 1
        now = time.monotonic()
        if self.done == 1:
            self.second = now
        text = "".join(f"  {name} {value:.4f}" for name, value in scalars.items() if name not in ("lr", "grad_norm"))
        self.line = f"step {step}{text}{self._rate(now)}"
        if self.done == 1:
            self._write(f"start   {now - self.began:.1f} s the first step, with its data\n")
        if not self.clever:
            self._say(now)
        elif now - self.drawn >= 0.1:
            self.drawn = now
            self._write(self._drawn())

    def evaluated(self, step: int, scalars: Scalars) -> None:
        self._write(f"step {step}  eval " + "  ".join(f"{name} {value:.4f}" for name, value in scalars.items()) + "\n")

    def end(self) -> None:
        if self.line and (self.clever or self.shown != self.done):
            self._write(self.line + "\n")

    def _say(self, now: float) -> None:
        """The first step, and then every so many, or every so many seconds."""
        due = self.done % self.every == 0 if self.every else now - self.said >= QUIET_SECONDS
        if self.done == 1 or due:
            self.said, self.shown = now, self.done
            self._write(self.line + "\n")

    def _rate(self, now: float) -> str:
        """Steps a second after the first one, which takes longer, and the time left."""
        if self.done < 2:
            return ""
        took = (now - self.second) / (self.done - 1)
        left = f"  {_clock(took * (self.steps - self.done))} left" if self.steps and self.steps > self.done else ""
        return f"  {1 / max(took, 1e-9):.1f} steps/s{left}"

    def _drawn(self) -> str:
        try:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
        except (OSError, ValueError):
            width = shutil.get_terminal_size().columns
        width = (width or 80) - 1  # a cursor after the last column is on the next line
        full = CELLS * min(self.done, self.steps) // self.steps if self.steps else 0
        head = "[" + "#" * full + "." * (CELLS - full) + "] " if self.steps and width >= 3 * CELLS else ""
        return (head + self.line)[:width]

    def _write(self, line: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(("\r\x1b[K" if self.clever else "") + line)
            sys.stderr.flush()


def _clock(seconds: float) -> str:
    """"12 s", "3:07", "2:05:09"."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
