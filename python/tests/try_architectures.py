#!/usr/bin/env python3
"""Tries architectures of transformers, torchvision and timm by name (names.py): each in a small configuration
with random weights, as it comes, exported with par.export and trained in Par and in PyTorch, whose losses
must be equal (train_architectures.py).

    python3 python/tests/try_architectures.py --bin build/bin --json rows.jsonl
        [--only causal/llama,tv] [--plan 'mesh: {dp: 2}']
    python3 python/tests/try_architectures.py --table rows.jsonl

A name that --json has is not tried again, so that a run that was stopped goes on. Each architecture has a
process of its own, and --seconds until it counts as `no end`. The results:

    trained             as PyTorch does
    wrong               other losses
    refused by torch    torch.onnx.export fails, or forward itself does
    refused by Par      par.export or par-compile says why
    stopped             par-compile or par-run ends otherwise
    no end              within --seconds
"""

import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import warnings

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "test/Models/zoo")]
STEPS = 3
CAUSES = ("trained", "wrong", "refused by torch", "refused by Par", "stopped", "no end", "not run")


def outcome(name, options, folder):
    """Tries an architecture: its result, and the messages."""
    import names
    import par
    import torch
    import train_architectures as train

    torch.set_num_threads(1)
    train.STEPS = STEPS
    train.ARCHITECTURES = {name: (lambda: names.build(name), lambda: names.feed(name, STEPS))}
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            worst, theirs, bound, note = train.trial(name, options, folder)
    except par.Error as error:
        cause = (
            "refused by torch"
            if error.message.startswith(("torch.onnx.export failed", "forward of"))
            else "refused by Par"
        )
        return cause, " | ".join([error.message, *error.notes])
    except RuntimeError as error:
        lines = [line for line in str(error).splitlines() if "error:" in line]
        return (
            ("refused by Par", " | ".join(str(error).splitlines()))
            if lines and "model.onnx" in lines[0]
            else ("stopped", str(error))
        )
    told = "; ".join(
        str(one.message) for one in said if "the file" in str(one.message) or " Par" in str(one.message)
    )
    return (
        "trained" if worst <= bound else "wrong"
    ), f"losses {worst:.1e} apart, bound {bound:.0e}{note}; {told}".rstrip("; ")


def try_one(name, options):
    """In a process of its own, which has no more than --seconds."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="par-architecture-") as folder:
        child = os.fork()
        if child == 0:
            os.setsid()
            code = 1
            try:
                said = outcome(name, options, pathlib.Path(folder))
                (pathlib.Path(folder) / "outcome.json").write_text(json.dumps(said))
                code = 0
            except BaseException as error:  # whatever it is belongs into the table
                (pathlib.Path(folder) / "outcome.json").write_text(
                    json.dumps(["stopped", f"{type(error).__name__}: {error}"])
                )
            finally:
                os._exit(code)
        ended = False
        while not ended and time.monotonic() - begin < options.seconds:
            time.sleep(0.1)
            ended = os.waitpid(child, os.WNOHANG)[0] == child
        if not ended:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        result = pathlib.Path(folder) / "outcome.json"
        cause, said = (
            json.loads(result.read_text())
            if ended and result.exists()
            else ("no end" if not ended else "stopped", "")
        )
    return {"name": name, "cause": cause, "said": said[:600], "seconds": round(time.monotonic() - begin, 1)}


def commit():
    done = subprocess.run(
        ["git", "-C", str(HERE.parent), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    return done.stdout.strip()


def table(rows, known):
    """By cause, and a line for each that does not train."""
    by_cause = collections.defaultdict(list)
    for name in known:
        by_cause[rows[name]["cause"] if name in rows else "not run"].append(name)
    commits = sorted({row["commit"] for row in rows.values()})
    print(f"{len(rows)} of {len(known)} architectures by name, commit {', '.join(commits)}\n")
    print("| result | architectures | which |", "| --- | --- | --- |", sep="\n")
    for cause in CAUSES:
        if by_cause[cause]:
            print(f"| {cause} | {len(by_cause[cause])} | {', '.join(by_cause[cause])} |")
    print()
    for cause in CAUSES[1:-1]:
        for name in by_cause[cause]:
            print(f"{name}: {cause}: {rows[name]['said'][:300]}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", help="where the tools are")
    parser.add_argument("--only", default="", help="names, or kinds of them, separated by commas")
    parser.add_argument("--plan", default="", help="further plan text")
    parser.add_argument("--json", type=pathlib.Path, help="rows are appended, a JSON object a line")
    parser.add_argument("--seconds", type=float, default=180, help="of each architecture")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="seconds after which no other one begins"
    )
    parser.add_argument("--table", type=pathlib.Path, help="print what --json wrote")
    options = parser.parse_args()
    import names

    file = options.table or options.json
    lines = file.read_text().splitlines() if file and file.exists() else []
    rows = {row["name"]: row for row in map(json.loads, lines)}
    if options.table:
        table(rows, names.ALL)
        return 0
    if not options.bin:
        parser.error("--bin says where the tools are")
    wanted = options.only.split(",") if options.only else []
    chosen = [name for name in names.ALL if not wanted or name in wanted or name.split("/")[0] in wanted]
    names.import_libraries()
    begin = time.monotonic()
    for name in chosen:
        if name in rows or time.monotonic() - begin > options.budget:
            continue
        rows[name] = {**try_one(name, options), "commit": commit()}
        print(
            f"{name}: {rows[name]['cause']}, {rows[name]['seconds']} s: {rows[name]['said'][:200]}",
            flush=True,
        )
        if options.json:
            with options.json.open("a") as out:
                out.write(json.dumps(rows[name]) + "\n")
    table(rows, chosen)
    return any(row["cause"] in ("wrong", "stopped") for row in rows.values())


if __name__ == "__main__":
    sys.exit(main())
