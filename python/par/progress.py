"""A line on stderr for what takes more than a few seconds."""
import contextlib
import sys
import threading
import time

PATIENCE = 4.0  # seconds without a word


class Line:
    """The line; `text` is what goes on now."""

    def __init__(self, text):
        self.text = text
        self.begin = time.monotonic()
        self.ended = threading.Event()

    def watch(self):
        """On a terminal the line counts seconds and goes at the end; elsewhere it is written once."""
        if self.ended.wait(PATIENCE):
            return
        with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be closed, full or none
            if not sys.stderr.isatty():
                print(f"{self.text} ...", file=sys.stderr, flush=True)
                return
            while True:
                print(f"\r\x1b[K{self.text} ... {time.monotonic() - self.begin:.0f} s", end="", file=sys.stderr,
                      flush=True)
                if self.ended.wait(1.0):
                    break
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def line(text):
    """Shows `text` while what stands within takes its time. Gives the Line."""
    shown = Line(text)
    watcher = threading.Thread(target=shown.watch, daemon=True, name="par-progress")
    watcher.start()
    try:
        yield shown
    finally:
        shown.ended.set()
        watcher.join()
