"""Claims, the steps that make them, and the summary."""
import json
import math
import subprocess
import time
import traceback

# From the best to the worst: a step is what its worst claim is.
STATUS = ["pass", "not shown", "not possible", "refused", "timed out", "fail"]


class Refused(Exception):
    """The compiler or the runtime says that it cannot do this yet."""


class NotPossible(Exception):
    """This machine lacks what is needed."""


class Broken(Exception):
    """A program ended as it must not."""


class TimeUp(Exception):
    """The step's time is over."""


OUTCOMES = {Refused: "refused", NotPossible: "not possible", Broken: "fail", TimeUp: "timed out",
            subprocess.TimeoutExpired: "timed out"}


class Step:
    """A named part of the check with its own time limit, and its claims so far."""

    def __init__(self, name, seconds):
        self.name, self.claims, self.figures = name, [], {}
        self.begin = time.monotonic()
        self.deadline = self.begin + seconds
        self.seconds = 0.0

    def left(self):
        """Seconds until the step must end."""
        rest = self.deadline - time.monotonic()
        if rest <= 0:
            raise TimeUp(f"the step's {max(0.0, self.deadline - self.begin):.0f} s are over")
        return rest

    def note(self, what, status, text="", **figures):
        self.claims.append({"claim": what, "status": status, "text": text, **figures})
        print(f"  {status:12} {what}{': ' if text else ''}{text}", flush=True)

    def hold(self, what, figure, bound, least=False, note=""):
        """The figure is at most the bound, or at least; a NaN fails."""
        held = figure >= bound if least else figure <= bound
        self.note(what, "pass" if held else "fail", f"{figure:.3g} {'>=' if least else '<='} {bound:.3g}{note}",
                  figure=figure,
                  bound=bound)

    def attempt(self, what, body, *arguments, **options):
        """An exception of `body` is this claim's outcome, and the step goes on. Returns body's result."""
        try:
            self.left()
            return body(*arguments, **options)
        except Exception as failure:  # whatever it is must be in the summary
            status = next((status for kind, status in OUTCOMES.items() if isinstance(failure, kind)), "fail")
            known = type(failure) in OUTCOMES
            self.note(what, status, str(failure) if known else traceback.format_exc(limit=3))
        return None

    def status(self):
        if not self.claims:
            return "fail"
        return max((claim["status"] for claim in self.claims), key=STATUS.index)

    def record(self):
        return {"step": self.name, "status": self.status(), "seconds": round(self.seconds, 1), "claims": self.claims,
                **self.figures}


def finite(value):
    """JSON has no NaN: what is not a finite number is null."""
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def counts(steps):
    claims = [claim["status"] for step in steps for claim in step.claims]
    return {status: claims.count(status) for status in STATUS if status in claims}


def write(folder, head, steps):
    """gpu-check.json and gpu-check.txt; returns the exit status."""
    total = counts(steps)
    whole = {**head, "claims": total, "steps": [step.record() for step in steps]}
    (folder / "gpu-check.json").write_text(json.dumps(finite(whole), indent=1) + "\n")
    lines = [f"{key}: {value}" for key, value in head.items()] + [""]
    for step in steps:
        lines.append(f"{step.name}: {step.status()} ({step.seconds:.1f} s)"
                     + ("" if step.claims else ": nothing was claimed"))
        lines += [f"  {claim['status']:12} {claim['claim']}" + (f": {claim['text']}" if claim["text"] else "")
                  for claim in step.claims]
        lines += ["  " + line for line in step.figures.get("table", [])]
    lines += ["", "claims: " + (", ".join(f"{count} {status}" for status, count in total.items()) or "none")]
    (folder / "gpu-check.txt").write_text("\n".join(lines) + "\n")
    print(lines[-1])
    if not total or "fail" in total or "timed out" in total or any(not step.claims for step in steps):
        return 1
    return 0 if set(total) == {"pass"} else 3
